// What an audience would stumble over in the deck that is open: a sentence each. `lesson` is what
// the notebook says: its sections, its tools' calls, the numbers of its predictions and pictures.

const SMALLEST = 16; // pixels of type, in a view of 1280 × 720
const plain = (text) => text.replace(/\s+/g, " ").trim();

const complaints = (lesson) => {
  const found = [];
  const headings = [], sources = [];
  let predictions = 0, pictures = 0;
  Reveal.getSlides().forEach((slide, number) => {
    const say = (what) => found.push(`slide ${number + 1}: ${what}`);
    const { h, v } = Reveal.getIndices(slide);
    Reveal.slide(h, v, -1);
    const seen = (part) => part.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    const code = [...slide.querySelectorAll(".jp-CodeCell .highlight")];
    const outputs = [...slide.querySelectorAll(".jp-OutputArea-child")];
    const claims = slide.querySelectorAll(".claim");
    if (!slide.querySelector("h1, h2")) say("it has no title");
    if (claims.length && claims.length === outputs.length && !code.length) say("a claim is alone");
    if (claims.length > 1) say("more than one claim");
    pictures += slide.querySelectorAll(".jp-OutputArea-child img").length;
    if (code.some(seen) && outputs.some(seen)) say("an output comes with its code, not after it");
    const asked = [...slide.querySelectorAll(".predict")];
    if (asked.length && (code.length || outputs.length)) say("a prediction shares its slide");
    predictions += asked.length;
    headings.push(...[...slide.querySelectorAll("h2")].map((one) => plain(one.textContent)));
    sources.push(...code.map((one) => plain(one.textContent)));

    Reveal.slide(h, v, 99); // with all that comes step by step
    if ([...slide.querySelectorAll("aside.notes")].some(seen)) say("the notes are shown");
    const parts = [...slide.querySelectorAll("*")].filter((part) => !part.closest("aside") && seen(part));
    if (!parts.length) say("nothing is shown");
    const words = [...slide.querySelectorAll(".jp-MarkdownCell :is(p, li, td, h1, h2, h3)")].filter(seen);
    const bare = (part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.data.includes("`"));
    if (words.some(bare)) say("code that is no code");
    const trap = slide.querySelector("p.trap");
    if (trap && !plain(trap.parentElement.textContent.replace(trap.parentElement.querySelector("h3").textContent, "")).replace("Trap", "").trim())
      say("a trap that is a title only");
    const boxes = parts.map((part) => part.getBoundingClientRect());
    if (boxes.some((box) => box.bottom > 720.5 || box.right > 1280.5 || box.top < 0 || box.left < 0))
      say("something does not fit the screen");
    if (parts.some((part) => part.clientWidth && getComputedStyle(part).overflowX !== "visible" &&
        (part.scrollWidth > part.clientWidth + 1 || part.scrollHeight > part.clientHeight + 1)))
      say("something is cut off");
    const sizes = parts
      .filter((part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
      .map((part) => parseFloat(getComputedStyle(part).fontSize));
    if (Math.min(...sizes) < SMALLEST) say(`type of ${Math.min(...sizes)} pixels`);
    for (const picture of slide.querySelectorAll("img")) {
      if (!picture.naturalWidth) say("a picture is not shown");
      if (!picture.alt) say("a picture has no alt text");
    }
  });
  for (const title of lesson.sections)
    if (!headings.includes(plain(title))) found.push(`no slide opens the section ${title}`);
  const order = sources.join("\n") === lesson.code.map(plain).join("\n");
  if (!order) found.push("the code is not that of the tools' calls, one by one, in order");
  if (pictures !== lesson.pictures) found.push(`${pictures} pictures instead of ${lesson.pictures}`);
  if (predictions !== lesson.predictions)
    found.push(`${predictions} predictions instead of ${lesson.predictions}`);
  return found;
};
