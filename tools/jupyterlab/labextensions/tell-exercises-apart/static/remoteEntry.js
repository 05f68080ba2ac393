// A lesson and its set of exercises have the same file name, because the grader needs it, so that
// two of JupyterLab's tabs would look alike. This extension writes "Exercises" before the name of
// the second. It is written as JupyterLab loads it, so that nothing has to be built.

const NAME = "tell-exercises-apart";
// Not the title's label: JupyterLab would take a new one for a new file name, and rename the file.
const STYLE = `
  .lm-TabBar-tab[data-exercises] .lm-TabBar-tabLabel::before { content: "Exercises · "; }
`;

const markTabs = (shell) => {
  for (const widget of shell.widgets("main")) {
    const title = widget.title;
    if (/(^|\/)exercises\//.test(widget.context?.path) && !("exercises" in title.dataset)) {
      title.dataset = { ...title.dataset, exercises: "" };
    }
  }
};

const plugin = {
  id: `${NAME}:plugin`,
  autoStart: true,
  activate: (app) => {
    document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
    app.shell.layoutModified?.connect(markTabs);
    app.restored.then(() => markTabs(app.shell));
  },
};

window._JUPYTERLAB = window._JUPYTERLAB ?? {};
window._JUPYTERLAB[NAME] = {
  init: () => {},
  get: async () => () => ({ __esModule: true, default: plugin }),
};
