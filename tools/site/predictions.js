// A question's options as buttons: the first that is chosen is the prediction, which opens the
// answer and stays in this browser alone.
const KEY = "measure-pytorch predictions";

const kept = () => {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {}; // the browser keeps nothing, or something else
  }
};

const keep = (chosen) => {
  try {
    localStorage.setItem(KEY, JSON.stringify(chosen));
  } catch {} // this page goes on without
};

// The folded text below a question that says which answer is right.
const answerOf = (question) =>
  [...document.querySelectorAll("details")].find(
    (it) =>
      question.compareDocumentPosition(it) & Node.DOCUMENT_POSITION_FOLLOWING &&
      /answer is \([a-e]\)/.test(it.textContent),
  );

const show = (question, letter) => {
  const { right } = question.dataset;
  for (const button of question.querySelectorAll("button")) {
    button.disabled = true;
    button.classList.toggle("right", button.value === right);
    button.classList.toggle("chosen", button.value === letter);
  }
  question.querySelector("p").textContent =
    `You predicted (${letter}), and the answer is (${right}).`;
};

const tally = (chosen) => {
  for (const record of document.querySelectorAll(".record-of")) {
    const questions = [...document.querySelectorAll(".predict")];
    const made = questions.filter((it) => chosen[it.dataset.question]);
    const right = made.filter((it) => chosen[it.dataset.question] === it.dataset.right);
    record.querySelector("p").textContent =
      `You have predicted ${made.length} of the ${questions.length} answers on this page, and ` +
      `${right.length} of them right. This is kept in your browser and nowhere else.`;
    record.querySelector("button").hidden = !made.length;
  }
};

document.addEventListener("DOMContentLoaded", () => {
  const chosen = kept();
  const questions = [...document.querySelectorAll(".predict")];
  for (const question of questions) {
    const name = question.dataset.question;
    if (chosen[name]) show(question, chosen[name]);
    question.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (!button) return;
      chosen[name] = button.value;
      keep(chosen);
      show(question, button.value);
      const answer = answerOf(question);
      if (answer) answer.open = true;
      tally(chosen);
    });
  }
  document.querySelector(".record-of button")?.addEventListener("click", () => {
    for (const { dataset } of questions) delete chosen[dataset.question];
    keep(chosen);
    location.reload();
  });
  tally(chosen);
});
