// Sets the theme before the page is drawn, so that it does not flash.
const theme = localStorage.getItem("steno-theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
