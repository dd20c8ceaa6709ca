// The files by which npm starts programs on Windows. This test has the lines of them that matter.

import { chmodSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { findStart } from "../../../src/cli/tools/shim.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const NODE =
  'IF EXIST "%dp0%\\node.exe" (\r\n  SET "_prog=%dp0%\\node.exe"\r\n) ELSE (\r\n  SET "_prog=node"\r\n)\r\n';
const END = "endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & ";

test("a program that npm's file starts is started without cmd, which would read its arguments", () => {
  using folder = makeTempFolder();
  const find = (text: string): readonly string[] => {
    writeFileSync(folder.join("tool.cmd"), `@ECHO off\r\n${text}`);
    return findStart(folder.join("tool.cmd"));
  };
  writeFileSync(folder.join("node.exe"), "");
  chmodSync(folder.join("node.exe"), 0o755);
  const script = folder.join("node_modules/@a/b/cli.js");
  const line = '"%dp0%\\node_modules\\@a\\b\\cli.js" %*\r\n';
  expect(find(`${NODE}${END}"%_prog%"  ${line}`)).toEqual([folder.join("node.exe"), script]);
  const flags = ["--no-warnings=DEP0040", "--x"];
  expect(find(`${NODE}${END}"%_prog%" ${flags.join(" ")} ${line}`)).toEqual([
    folder.join("node.exe"),
    ...flags,
    script,
  ]);
  expect(find('"%dp0%\\node_modules\\c\\c.exe"   %*\r\n')).toEqual([folder.join("node_modules/c/c.exe")]);
});

test("a program that something else starts is started as it is", () => {
  using folder = makeTempFolder();
  const own = folder.join("tool.cmd");
  const OTHERS = [
    "@echo off\r\nmy tool %*\r\n",
    `${NODE.replaceAll("=node", "=python")}${END}"%_prog%"  "%dp0%\\a.py" %*\r\n`,
    `${NODE}${END}"%_prog%" "-e" "%dp0%\\a.js" %*\r\n`,
    `${NODE}${END}"%_prog%"  "%dp0%\\a.js" %*\r\ndel x\r\n`,
  ];
  for (const text of OTHERS) {
    writeFileSync(own, text);
    expect([text, findStart(own)]).toEqual([text, [own]]);
  }
  expect(findStart("/usr/bin/claude")).toEqual(["/usr/bin/claude"]);
});
