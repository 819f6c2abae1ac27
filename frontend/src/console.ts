/** The console's script: every page loads it. */
import htmx from "htmx.org";
import { watchCells } from "./live/cells";
import { startCharts } from "./live/charts";
import { Figures } from "./live/figures";
import { LiveSocket } from "./live/socket";
import { startCopying } from "./shell/copy";
import { startDialogs } from "./shell/dialogs";
import { startDrawer } from "./shell/drawer";
import { startFilters } from "./shell/filter";
import { startKeyboard } from "./shell/keyboard";
import { startPalette } from "./shell/palette";
import { startRequests } from "./shell/requests";
import { startTheme } from "./shell/theme";
import { startTimes } from "./shell/times";
import { startToasts } from "./shell/toasts";

Object.assign(htmx.config, {
  allowEval: false,
  includeIndicatorStyles: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
});

const LIVE_PARTS = "[data-topic], [data-chart], [data-on-change]";

function startLive(): void {
  watchCells(document);
  startCharts(document);
  document.addEventListener("htmx:afterSettle", (event) => {
    const { parentElement } = event.target as HTMLElement;
    watchCells(parentElement ?? document);
  });
  const status = document.getElementById("live");
  if (!status || !document.querySelector(LIVE_PARTS)) return;
  const socket = new LiveSocket(status, document.querySelector("[data-pause]"));
  const figures = new Figures();
  socket.onRest = (isAwake) => figures.rest(isAwake);
  socket.start();
  figures.rest(!document.hidden);
}

startTheme();
startDrawer();
startToasts();
startRequests();
startDialogs();
startPalette();
startKeyboard();
startTimes();
startFilters();
startCopying();
startLive();
