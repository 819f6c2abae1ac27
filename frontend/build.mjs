/**
 * Builds static/dist/: a script and a style sheet per entry (every `src/*.ts`, `src/*.css`),
 * fonts, and `icons.svg`, one sprite of the Lucide icons that templates and views mention.
 * File names stay the same; Django's manifest storage adds the hashes.
 */
import { build, context } from "esbuild";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FRONTEND = import.meta.dirname;
const ROOT = join(FRONTEND, "..");
const DIST = join(ROOT, "static", "dist");
const LUCIDE = join(FRONTEND, "node_modules", "lucide-static", "icons");
// `{% icon "play" %}`, `with icon="play"`, `icon="play"` in Python, `icon: "play"` in scripts;
// `{% menu_item "home" "activity" … %}`, `{% badge "info" "loader-circle" … %}`.
const MENTION = /\bicon(?:\s+|\s*[=:]\s*)["']([a-z0-9-]+)["']|\{% (?:menu_item|badge) "[^"]*" "([a-z0-9-]+)"/g;

async function filesBelow(folder, endings) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => join(entry.parentPath, entry.name));
}

async function iconNames() {
  const files = [
    ...(await filesBelow(join(ROOT, "templates"), [".html"])),
    ...(await filesBelow(join(ROOT, "apps"), [".py", ".html"])),
    ...(await filesBelow(join(ROOT, "inferadmin"), [".py"])),
    ...(await filesBelow(join(FRONTEND, "src"), [".ts"])),
  ];
  const names = new Set();
  for (const file of files) {
    for (const match of (await readFile(file, "utf8")).matchAll(MENTION)) names.add(match[1] ?? match[2]);
  }
  return [...names].sort();
}

async function symbolOf(name) {
  let svg;
  try {
    svg = await readFile(join(LUCIDE, `${name}.svg`), "utf8");
  } catch {
    throw new Error(`a template names the icon "${name}", which Lucide does not have`);
  }
  const inner = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
  return `<symbol id="${name}" viewBox="0 0 24 24">${inner.replace(/\s+/g, " ").trim()}</symbol>`;
}

async function buildIcons() {
  const symbols = await Promise.all((await iconNames()).map(symbolOf));
  await writeFile(
    join(DIST, "icons.svg"),
    `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("")}</svg>\n`,
  );
}

async function entryPoints() {
  const names = await readdir(join(FRONTEND, "src"));
  return names
    .filter((name) => /\.(ts|css)$/.test(name) && !name.endsWith(".d.ts"))
    .map((name) => join(FRONTEND, "src", name));
}

const options = {
  entryPoints: await entryPoints(),
  outdir: DIST,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome123", "firefox121", "safari17.5"],
  loader: { ".woff2": "file" },
  assetNames: "[name]",
  logLevel: "warning",
};

await mkdir(DIST, { recursive: true });
await buildIcons();
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
}
