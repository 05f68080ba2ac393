// What the tests ask JupyterLab, through the application that it shows when told to.

const notebookOf = (path) =>
  [...jupyterapp.shell.widgets("main")].find((one) => one.context?.path === path);

const cellOf = ([path, id]) => notebookOf(path).content.widgets.find((cell) => cell.model.id === id);

// Brings a notebook to the front, as a double click on its name does, and opens it if it is not.
// Nothing is returned, because Chromium can lose a promise that Playwright waits for ("garbage
// collected"): what was asked for is waited for by what is then seen.
const show = (path) => {
  jupyterapp.commands.execute("docmanager:open", { path });
};

const end = (path) => {
  const notebook = notebookOf(path);
  notebook.sessionContext.shutdown().then(() => notebook.dispose());
};

const drawn = (path) => {
  const notebook = notebookOf(path);
  return notebook && notebook === jupyterapp.shell.currentWidget && notebook.isRevealed &&
    notebook.content.widgets.every((cell) => cell.node.isConnected &&
      (cell.model.type === "code" || cell.node.querySelector(".jp-RenderedMarkdown")?.firstChild)) &&
    [...notebook.node.querySelectorAll("img")].every((picture) => picture.complete);
};

// What the tabs say; the style of a label can add a word before it.
const tabs = () =>
  [...document.querySelectorAll(".lm-DockPanel-tabBar .lm-TabBar-tabLabel")].map((label) => {
    const added = getComputedStyle(label, "::before").content;
    return (added === "none" ? "" : JSON.parse(added)) + label.textContent;
  });

const idle = (path) => notebookOf(path).sessionContext.session?.kernel?.status === "idle";

const codeCells = (path) =>
  [...notebookOf(path).content.model.cells].filter((one) => one.type === "code").map((one) => one.toJSON());
// Whether every cell has run; a failed one ends the run.
const done = (path) =>
  idle(path) && (failures(path).length || codeCells(path).every((cell) => cell.execution_count));
const failures = (path) => codeCells(path).flatMap((cell) => cell.outputs
  .filter((output) => output.output_type === "error" || output.name === "stderr")
  .map((output) => `${cell.id}: ${output.evalue ?? output.text}`));

const count = (place) => cellOf(place).model.executionCount;
const ran = ([path, id, before]) => idle(path) && ![null, before].includes(count([path, id]));
const secondsBelow = (place) => cellOf(place).node.querySelector(".execute-time")?.innerText ?? "";

const seeThrough = (picture) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 9, height: 9 });
  const paper = canvas.getContext("2d");
  paper.drawImage(picture, 0, 0, 9, 9);
  return paper.getImageData(0, 0, 9, 9).data.some((value, place) => place % 4 === 3 && value < 255);
};

// What does not fit one view of the notebook, or is not seen in it: a sentence each.
const complaints = (path) => {
  const notebook = notebookOf(path).content;
  const view = notebook.node.getBoundingClientRect();
  const found = [];
  for (const cell of notebook.widgets) {
    const id = cell.model.id;
    const say = (what) => found.push(`${id}: ${what}`);
    cell.node.querySelectorAll("details").forEach((fold) => {
      fold.open = !fold.textContent.startsWith("Instructor notes");
    });
    const input = cell.node.querySelector(".jp-Cell-inputWrapper");
    const outputs = [...cell.node.querySelectorAll(".jp-OutputArea-child")];
    [input, ...outputs].forEach((part, place) => {
      const name = place ? `output ${place}` : cell.model.type === "code" ? "the code" : "the text";
      const box = part.getBoundingClientRect();
      // Who reads what a fold holds has no need of the line that opened it.
      const height = box.height - (part.querySelector("summary")?.offsetHeight ?? 0);
      if (height > view.height)
        say(`${name} is ${Math.round(height)} pixels high, a view ${Math.round(view.height)}`);
      const wide = [part, ...part.querySelectorAll("*")].find((one) =>
        one.clientWidth && one.scrollWidth > one.clientWidth + 1 &&
        ["auto", "scroll"].includes(getComputedStyle(one).overflowX));
      const beyond = [...part.querySelectorAll("table, img, pre")].some(
        (one) => one.getBoundingClientRect().right > view.right);
      if (wide || beyond) say(`${name} is wider than the notebook`);
      for (const pre of part.querySelectorAll(".jp-RenderedText pre")) {
        const lines = pre.textContent.replace(/\n$/, "").split("\n").length;
        const drawn = pre.getBoundingClientRect().height / parseFloat(getComputedStyle(pre).lineHeight);
        if (drawn > lines + 3.5) say(`${name} breaks ${Math.round(drawn - lines)} of its lines`);
      }
      for (const picture of part.querySelectorAll("img")) {
        if (!picture.naturalWidth || !picture.getBoundingClientRect().height)
          say(`${name} has a picture that is not shown`);
        else if (seeThrough(picture)) // black lines would be lost on a dark page
          say(`${name} has a picture without a background`);
        if (["", "Image"].includes(picture.alt)) // "Image" is what JupyterLab itself fills in
          say(`${name} has a picture without alt text`);
      }
    });
  }
  return found;
};
