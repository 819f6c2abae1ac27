/** The last minutes of every topic that the page watches, fed by the socket or by polling. */

export const WINDOW_SECONDS = 15 * 60;

export interface Snapshot {
  type: "snapshot";
  topic: string;
  step: number;
  t: number[];
  series: Record<string, (number | null)[]>;
}

export interface Tick {
  type: "tick";
  topic: string;
  t: number;
  values: Record<string, number | null>;
}

type Listener = (history: History) => void;

export class History {
  t: number[] = [];
  series = new Map<string, (number | null)[]>();
  private listeners: Listener[] = [];

  listen(listener: Listener): void {
    this.listeners.push(listener);
    if (this.t.length > 0) listener(this);
  }

  replace(snapshot: Snapshot): void {
    this.t = snapshot.t;
    this.series = new Map(Object.entries(snapshot.series));
    this.tell();
  }

  /** Append one second; a tick that is not newer than the last is dropped. */
  append(tick: Tick): void {
    const last = this.t.at(-1);
    if (last !== undefined && tick.t <= last) return;
    this.t.push(tick.t);
    for (const [name, value] of Object.entries(tick.values)) this.column(name).push(value);
    for (const column of this.series.values()) if (column.length < this.t.length) column.push(null);
    this.forget(tick.t - WINDOW_SECONDS);
    this.tell();
  }

  /** The newest value of a series that is not older than `age` seconds. */
  latest(name: string, age = 15): number | null {
    const column = this.series.get(name);
    const end = this.t.at(-1);
    if (!column || end === undefined) return null;
    for (let i = column.length - 1; i >= 0 && end - this.t[i]! <= age; i -= 1) {
      if (column[i] != null) return column[i]!;
    }
    return null;
  }

  /** Mean of a series between two moments, counted back in seconds from the end. */
  mean(name: string, from: number, to: number): number | null {
    const column = this.series.get(name);
    const end = this.t.at(-1);
    if (!column || end === undefined) return null;
    let sum = 0;
    let count = 0;
    for (let i = column.length - 1; i >= 0 && end - this.t[i]! <= from; i -= 1) {
      if (end - this.t[i]! < to || column[i] == null) continue;
      sum += column[i]!;
      count += 1;
    }
    return count > 0 ? sum / count : null;
  }

  private column(name: string): (number | null)[] {
    let column = this.series.get(name);
    if (!column) {
      column = new Array<number | null>(this.t.length - 1).fill(null);
      this.series.set(name, column);
    }
    return column;
  }

  private forget(before: number): void {
    let count = 0;
    while (count < this.t.length && this.t[count]! < before) count += 1;
    if (count === 0) return;
    this.t.splice(0, count);
    for (const column of this.series.values()) column.splice(0, count);
  }

  private tell(): void {
    for (const listener of this.listeners) listener(this);
  }
}

const histories = new Map<string, History>();

export function historyOf(topic: string): History {
  let history = histories.get(topic);
  if (!history) {
    history = new History();
    histories.set(topic, history);
  }
  return history;
}

/** Cells of tables: asked for by `figures.ts`, not sent over the socket. */
export const FIGURES = "figures";

/** Topics of the socket that something on the page watches. */
export function topics(): string[] {
  return [...histories.keys()].filter((topic) => topic !== FIGURES);
}
