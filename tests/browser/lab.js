// What the tests ask JupyterLab, through the application that it shows when told to.

const current = () => jupyterapp.shell.currentWidget;
const codeCells = () =>
  [...current().content.model.cells].filter((cell) => cell.type === "code").map((cell) => cell.toJSON());
const errors = () =>
  codeCells().flatMap((cell) => cell.outputs.filter((output) => output.output_type === "error"));

// Opens a notebook in the place of the one that is open, as a double click on its name would.
const openNotebook = (path) => {
  current()?.dispose();
  jupyterapp.commands.execute("docmanager:open", { path });
};

const drawn = (path) =>
  window.jupyterapp && current()?.context?.path === path && current().isRevealed &&
  current().content.widgets.every((cell) => cell.node.isConnected &&
    (cell.model.type === "code" || cell.node.querySelector(".jp-RenderedMarkdown"))) &&
  [...current().node.querySelectorAll("img")].every((picture) => picture.complete);

const idle = () => current().sessionContext.session?.kernel?.status === "idle";
const done = () => errors().length || codeCells().every((cell) => cell.execution_count);

// What does not fit one view of the notebook, or is not seen in it: a sentence each.
const complaints = () => {
  const notebook = current().content;
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
      if (box.height > view.height)
        say(`${name} is ${Math.round(box.height)} pixels high, a view ${Math.round(view.height)}`);
      const wide = [part, ...part.querySelectorAll("*")].find((one) =>
        one.clientWidth && one.scrollWidth > one.clientWidth + 1 &&
        ["auto", "scroll"].includes(getComputedStyle(one).overflowX));
      const beyond = [...part.querySelectorAll("table, img, pre")].some(
        (one) => one.getBoundingClientRect().right > view.right);
      if (wide || beyond) say(`${name} is wider than the notebook`);
      for (const pre of part.querySelectorAll(".jp-RenderedText pre")) {
        const lines = pre.textContent.replace(/\n$/, "").split("\n").length;
        const drawn = pre.getBoundingClientRect().height / parseFloat(getComputedStyle(pre).lineHeight);
        if (drawn > lines + 2.5) say(`${name} breaks ${Math.round(drawn - lines)} of its lines`);
      }
      for (const picture of part.querySelectorAll("img")) {
        if (!picture.naturalWidth || !picture.getBoundingClientRect().height)
          say(`${name} has a picture that is not shown`);
        if (["", "Image"].includes(picture.alt)) // "Image" is what JupyterLab itself fills in
          say(`${name} has a picture without alt text`);
      }
    });
  }
  return found;
};
