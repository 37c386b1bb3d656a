const { execSync, spawn, spawnSync, fork, execFile } = require("child_process");
if (process.argv[2] === "child") {
  process.on("message", message => { process.send(message * 2); process.disconnect(); });
} else {
  console.log(execSync("echo $((6*7)) | tr 4 5").toString().trim());
  const done = spawnSync("sh", ["-c", "cat; echo err >&2; exit 9"], { input: "in" });
  console.log(done.stdout.toString(), done.stderr.toString().trim(), done.status);
  const child = fork(__filename, ["child"]);
  child.on("message", message => console.log("from the child", message)).send(21);
  child.on("exit", code => {
    const sleeper = spawn("sleep", ["10"]);
    sleeper.on("exit", (code, signal) => {
      console.log(code, signal);
      execFile("no-such-program", error => console.log(error.code));
    });
    sleeper.kill();
  });
}
