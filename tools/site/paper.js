// Paper is white: a page that is dark on the screen is printed in its light colours.
const colours = document.documentElement.dataset;
let onScreen;

addEventListener("beforeprint", () => {
  onScreen = colours.theme;
  colours.theme = "light";
});
addEventListener("afterprint", () => {
  colours.theme = onScreen;
});
