const attempt = async url => {
  try {
    await fetch(url, { signal: AbortSignal.timeout(5000) });
    console.log("reached", url);
  } catch (error) {
    console.log("refused", url, error.name);
  }
};
(async () => {
  await attempt("http://192.0.2.1/");
  await attempt("http://name.invalid/");
})();
