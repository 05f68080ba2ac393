// On a phone a chart is wider than the page and scrolls: its title, out of its alternative text,
// stands above it, where all of it can be read (site.css shows it there only).
addEventListener("DOMContentLoaded", () => {
  for (const chart of document.querySelectorAll("img.course-chart")) {
    const title = /Title: (.+?)\. /.exec(chart.alt);
    if (!title) continue;
    const line = document.createElement("p");
    line.className = "chart-title";
    line.ariaHidden = "true"; // a screen reader reads the alternative text
    line.textContent = title[1];
    (chart.closest(".output.text_html") ?? chart).before(line);
  }
});
