// What the tests ask a page of the site.

const links = (selector) => [...document.querySelectorAll(selector)].map((one) => one.href);

const facts = () => ({
  text: document.querySelector("article")?.textContent ?? "",
  links: links("a[href]"),
  contents: links(".bd-sidebar-primary .bd-links a"),
});

// Whether it scrolls on its own, or stands in what does.
const scrolls = (one) =>
  one && (["auto", "scroll"].includes(getComputedStyle(one).overflowX) || scrolls(one.parentElement));

// What a reader would stumble over at this width: a sentence each.
const complaints = () => {
  const found = [];
  const page = document.documentElement;
  for (const one of [page, document.querySelector(".bd-article-container")])
    if (one.scrollWidth > one.clientWidth) found.push(`the page is ${one.scrollWidth} pixels wide`);
  for (const one of document.querySelectorAll("table, pre, img, math, code")) {
    const box = one.getBoundingClientRect();
    if (box.width && box.right > page.clientWidth + 1 && !scrolls(one))
      found.push(`a ${one.localName} ends at ${Math.round(box.right)}: ${one.textContent.slice(0, 40)}`);
  }
  for (const code of document.querySelectorAll(".cell_input pre"))
    if (page.clientWidth >= 1280 && code.scrollWidth > code.clientWidth + 1)
      found.push(`a line of code is cut: ${code.textContent.slice(0, 40)}`);
  for (const output of document.querySelectorAll(".cell_output > *")) {
    const height = output.getBoundingClientRect().height;
    if (page.clientWidth >= 1280 && height > 1000) found.push(`an output is ${Math.round(height)} pixels high`);
  }
  for (const picture of document.querySelectorAll("img")) {
    if (!picture.naturalWidth) found.push(`a picture is not shown: ${picture.alt.slice(0, 40)}`);
    if (picture.matches(".course-chart, .chart img") && picture.width < 0.45 * picture.naturalWidth)
      found.push(`the letters of a chart are too small: ${picture.alt.slice(0, 40)}`);
    if (picture.alt.length < 10) found.push(`a picture without alt text: ${picture.src.slice(0, 40)}`);
  }
  for (const text of document.querySelectorAll("article p, article li, article td"))
    if (/\$[^$]+\$/.test([...text.childNodes].filter((one) => one.nodeType === 3).map((one) => one.data).join("")))
      found.push(`a formula is not drawn: ${text.textContent.slice(0, 40)}`);
  return found;
};

// What paper, which cannot scroll, would lose: asked in a view as wide as a page of A4.
const onPaper = () =>
  [...document.querySelectorAll("article, article :is(pre, table, img, math)")]
    .filter((one) => one.getClientRects().length && scrolls(one))
    .map((one) => `a ${one.localName} scrolls on paper: ${one.textContent.trim().slice(0, 40)}`);

// The first element of each kind that holds text: one style sheet gives all of a kind one colour.
const kinds = () => {
  const found = new Map();
  const kind = (one) => one && `${kind(one.parentElement)} ${one.localName}.${one.className}` +
    (one.localName === "tr" ? one.rowIndex % 2 : "") + (one.getAttribute("style") ?? "");
  for (const one of document.querySelectorAll("body *"))
    if ([...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
      found.set(kind(one), found.get(kind(one)) ?? one);
  return [...found.values()];
};

// Of the spans that colour a program one of each kind stays: axe would take minutes for all.
const thinOut = () => {
  const kept = new Set(kinds());
  for (const span of document.querySelectorAll("pre span"))
    if (!kept.has(span)) span.replaceWith(...span.childNodes);
};

// What axe finds serious or critical: everything but colours, or the colours.
const barriers = async (colours) => {
  const plain = { rules: { "color-contrast": { enabled: false } } };
  const options = colours ? { runOnly: ["color-contrast"] } : plain;
  const { violations } = await axe.run(colours ? kinds() : document, { resultTypes: ["violations"], ...options });
  return violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 100)}`));
};
