// Runs before the first paint. The key and its values are those of Mantine's colour scheme manager.
(() => {
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("astraflow-color-scheme") || "auto";
  } catch {
    // Storage is off: the scheme of the system is used.
  }
  const isDark =
    chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", isDark ? "dark" : "light");
})();
