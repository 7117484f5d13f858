// The pages work without this file. It fetches the middle of the page again every two seconds
// (the server has escaped it) and sends what the buttons ask for.
"use strict";

const main = document.getElementById("main");
const auto = document.getElementById("auto");
const PERIOD_MS = 2000;
let failed = false;

function busy() {
	const selection = document.getSelection();
	return document.hidden || (selection && !selection.isCollapsed && main.contains(selection.anchorNode));
}

function show(html) {
	const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
	main.innerHTML = html;
	enable();
	if (focused && document.getElementById(focused))
		document.getElementById(focused).focus({ preventScroll: true });
}

function note(text) {
	let line = document.getElementById("note");
	if (!line) {
		line = document.createElement("p");
		line.id = "note";
		line.className = "bad";
		line.setAttribute("role", "status");
		main.prepend(line);
	}
	line.textContent = text;
}

async function refresh() {
	try {
		const reply = await fetch(main.dataset.refresh, { cache: "no-store" });
		const type = reply.headers.get("Content-Type") || "";
		if (!type.startsWith("text/html"))
			throw new Error(String(reply.status));
		show(await reply.text());
		// The slot ended: show why, and do not ask again until somebody does.
		if (!reply.ok)
			auto.checked = false;
		failed = false;
	} catch (error) {
		if (!failed)
			note("No answer from the viewer; trying again.");
		failed = true;
	}
}

async function turn() {
	if (auto.checked && !busy())
		await refresh();
	setTimeout(turn, PERIOD_MS);
}

// Buttons are hidden where there is no script.
function enable() {
	for (const button of main.querySelectorAll("button[data-method]")) {
		button.hidden = false;
		button.onclick = async () => {
			await fetch(button.dataset.url, { method: button.dataset.method });
			if (button.dataset.then)
				location.href = button.dataset.then;
			else
				refresh();
		};
	}
}

document.getElementById("auto-label").hidden = false;
enable();
setTimeout(turn, PERIOD_MS);
