/** The request that the playground would send, for a terminal and for Python. */

export type Body = Record<string, unknown>;

const KEY = "INFERADMIN_API_KEY";

export function curl(apiUrl: string, path: string, body: Body): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return [
    `curl ${apiUrl}${path} \\`,
    `  -H "Authorization: Bearer $${KEY}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${json}'`,
  ].join("\n");
}

export function python(apiUrl: string, path: string, body: Body): string {
  const call = path === "/embeddings" ? "embeddings.create" : "chat.completions.create";
  const lines = [
    "import os",
    "",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${literal(apiUrl)}, api_key=os.environ["${KEY}"])`,
    `answer = client.${call}(`,
    ...Object.entries(body).map(([name, value]) => `    ${name}=${literal(value)},`),
    ")",
  ];
  return [...lines, ...reading(path, body)].join("\n");
}

function reading(path: string, body: Body): string[] {
  if (path === "/embeddings") return ["print(len(answer.data[0].embedding))"];
  if (!body["stream"]) return ["print(answer.choices[0].message.content)"];
  return [
    "for chunk in answer:",
    "    if chunk.choices:",
    '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
  ];
}

/** A value as Python writes it; JSON differs in three words only. */
function literal(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    const items = Object.entries(value as Body).map(([k, v]) => `${literal(k)}: ${literal(v)}`);
    return `{${items.join(", ")}}`;
  }
  return JSON.stringify(value);
}
