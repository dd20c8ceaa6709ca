// Tests how the `.cmd` files that npm writes for programs on Windows are read. Here they have few lines.

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { findStart } from "../../../src/cli/tools/shells.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const NODE =
  '  SET "_prog=node"\r\n)\r\n\r\nendLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"';
const CLI = '"%dp0%\\node_modules\\@a\\b\\cli.js" %*\r\n';

const FILES: ReadonlyArray<readonly [text: string, words: readonly string[]]> = [
  [`${NODE}  ${CLI}`, ["node.exe", "node_modules/@a/b/cli.js"]],
  [`${NODE} --x=1 --y ${CLI}`, ["node.exe", "--x=1", "--y", "node_modules/@a/b/cli.js"]],
  ['"%dp0%\\node_modules\\c\\c.exe"   %*\r\n', ["node_modules/c/c.exe"]],
  ["my tool %*\r\n", ["tool.cmd"]],
  [`${NODE.replace("=node", "=python")}  ${CLI}`, ["tool.cmd"]],
  [`${NODE} "-e" ${CLI}`, ["tool.cmd"]],
  [`${NODE}  ${CLI}del x\r\n`, ["tool.cmd"]],
];

test.each(FILES)(
  "a tool that npm installed starts without cmd on Windows, and any other .cmd file starts as it is: %j",
  (text, words) => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("node.exe"), "");
    writeFileSync(folder.join("tool.cmd"), `@ECHO off\r\n${text}`);
    const found = findStart(folder.join("tool.cmd"));
    expect(found).toEqual(words.map((word) => (word.startsWith("--") ? word : folder.join(word))));
  },
);
