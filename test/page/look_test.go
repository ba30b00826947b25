// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"image/png"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// withMedia emulates a CSS media feature, such as prefers-color-scheme, until the test ends.
func withMedia(ctx context.Context, t *testing.T, name, value string) {
	t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}); err != nil {
			t.Error(err)
		}
	})
}

// Widths of the window in pixels: that of most tests, and that of a phone.
const (
	wide      = 1360
	narrowest = 400
)

// withWidth sets the width of the window until the test ends.
func withWidth(ctx context.Context, t *testing.T, width int64) {
	t.Helper()
	set := func(width int64) {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 1000)); err != nil {
			t.Error(err)
		}
	}
	set(width)
	t.Cleanup(func() { set(wide) })
}

// unseen is a script that returns the number of graphical marks, followed by the marks that do not
// stand out from their background: neither their fill nor their outline has a contrast of 3 : 1.
const unseen = `(() => {
	const parse = c => { const m = (c.match(/[\d.]+/g) || []).map(Number); return m.length > 3 ? m : [...m, 1]; };
	const lum = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const differ = (a, b) => { const c = parse(a); if (c.length < 4 || !c[3]) return false; const x = lum(c.slice(0, 3)), y = lum(parse(b).slice(0, 3)); return (Math.max(x, y) + .05) / (Math.min(x, y) + .05) >= 3; };
	const canvas = getComputedStyle(document.body).backgroundColor;
	const bad = new Set(), marks = ".fill, .start, .took, .used, .lost, .wait, .miss, .waited, .flag, .fall g rect, .hist g rect:not(.hit)";
	let seen = 0;
	for (const e of document.querySelectorAll("main svg :is(" + marks + ")")) {
		const s = getComputedStyle(e);
		seen++;
		if (!differ(s.fill, canvas) && !differ(s.stroke, canvas)) bad.add(e.getAttribute("class") + " in " + e.parentElement.getAttribute("class") + ": " + s.fill + " on " + canvas);
	}
	for (const e of document.querySelectorAll(".sq")) {
		const s = getComputedStyle(e);
		seen++;
		if (!e.textContent || !differ(s.borderTopColor, canvas)) bad.add("a square: " + s.borderTopColor + " on " + canvas);
	}
	for (const e of document.querySelectorAll("nav [aria-current], .choices [aria-current]")) {
		const s = getComputedStyle(e);
		if (s.borderBottomStyle === "none" || !differ(s.borderBottomColor, canvas)) bad.add("what is chosen is not marked: " + e.textContent);
	}
	return [String(seen), ...bad];
})()`

// forcedColours checks that all marks are visible in forced-colours mode, which removes backgrounds
// and shadows.
func forcedColours(ctx context.Context, t *testing.T, d *dashboard) {
	withMedia(ctx, t, "forced-colors", "active")
	seen := 0
	for _, page := range pages {
		open(ctx, t, d.base+page.path)
		shows(ctx, t, page.shows)
		if !value[bool](ctx, t, `matchMedia("(forced-colors: active)").matches`) {
			t.Skip("this browser does not emulate forced colours")
		}
		found := value[[]string](ctx, t, unseen)
		n, err := strconv.Atoi(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if seen += n; len(found) > 1 {
			t.Errorf("%s:\n%s", page.path, strings.Join(found[1:], "\n"))
		}
	}
	if seen < 20 {
		t.Errorf("only %d marks were seen: is this test looking?", seen)
	}
}

// wordless is a script that returns the elements whose meaning depends on colour alone: warnings
// and errors without a symbol, and chart marks without a title.
const wordless = `(() => {
	const bad = [];
	for (const e of document.querySelectorAll("main .is-warning, main .is-bad")) if (!(e instanceof SVGElement) && !/[▲✖]/.test(e.textContent)) bad.push(e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll("main :is(.strip, .lane, .hist) svg g:has(> rect)")) if (!e.querySelector("title")?.textContent) bad.push(e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll("main .key")) if (!e.textContent.trim()) bad.push(e.outerHTML.slice(0, 120));
	return bad;
})()`

// withoutColour checks the pages without any colour. The map's usage classes must differ in
// brightness and show digits, and good and bad states must have a symbol.
func withoutColour(ctx context.Context, t *testing.T, d *dashboard) {
	for _, page := range pages {
		open(ctx, t, d.base+page.path)
		shows(ctx, t, page.shows)
		if bad := value[[]string](ctx, t, wordless); len(bad) > 0 {
			t.Errorf("%s: only a colour says it:\n%s", page.path, strings.Join(bad, "\n"))
		}
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedVisionDeficiency, emulation.SetEmulatedVisionDeficiencyParams{Type: emulation.SetEmulatedVisionDeficiencyTypeAchromatopsia}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedVisionDeficiency, emulation.SetEmulatedVisionDeficiencyParams{Type: emulation.SetEmulatedVisionDeficiencyTypeNone}); err != nil {
			t.Error(err)
		}
	})
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			withMedia(ctx, t, "prefers-color-scheme", scheme)
			open(ctx, t, d.base+"/pools/worker")
			shows(ctx, t, "Levels")
			until(ctx, t, "the legend is there", `document.querySelectorAll(".cls .sq:not(.off)").length === 6`)
			// Sample a pixel inside the border of each square, away from its digit.
			corners := value[[][]float64](ctx, t, `[...document.querySelectorAll(".cls .sq:not(.off)")].map(e => e.getBoundingClientRect()).map(r => [r.left + scrollX + 3, r.top + scrollY + 3])`)
			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := png.Decode(bytes.NewReader(picture))
			if err != nil {
				t.Fatal(err)
			}
			before := math.NaN()
			for class, at := range corners {
				r, g, b, _ := decoded.At(int(at[0]), int(at[1])).RGBA()
				if most := max(r, g, b); most-min(r, g, b) > 0x600 {
					t.Fatalf("class %d has a colour (%d, %d, %d): it is not emulated", class, r>>8, g>>8, b>>8)
				}
				grey := math.Pow((float64(r)/0xffff+0.055)/1.055, 2.4) // Convert the sRGB value to linear light.
				if difference := math.Abs(grey-before) / max(grey, before); difference < 0.1 {
					t.Errorf("class %d is as bright as the one before: %.2f and %.2f", class, grey, before)
				}
				before = grey
			}
		})
	}
}

// crowded is a script that returns overlapping text, and text that is cut off and cannot be
// scrolled into view. Text below an open panel is ignored.
const crowded = `(() => {
	const bad = new Set(), texts = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = walk.nextNode();) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility() || e.closest("noscript, dialog, .skip, .sr, svg, script, datalist, title")) continue;
		let clip = { left: 0, top: 0, right: 1e6, bottom: 1e6 }, scrolls = false;
		for (let p = e; p !== document.body; p = p.parentElement) {
			const s = getComputedStyle(p);
			if (s.overflowX === "visible" && s.overflowY === "visible" || s.display === "inline") continue;
			const r = p.getBoundingClientRect();
			scrolls = scrolls || s.overflowX === "auto";
			clip = { left: Math.max(clip.left, r.left), top: Math.max(clip.top, r.top), right: Math.min(clip.right, r.right), bottom: Math.min(clip.bottom, r.bottom) };
		}
		const range = document.createRange();
		range.selectNodeContents(n);
		for (const r of range.getClientRects()) {
			if (!scrolls && r.right > innerWidth + 1) bad.add("cut: " + n.data.trim().slice(0, 40));
			const box = { left: Math.max(r.left, clip.left), top: Math.max(r.top, clip.top), right: Math.min(r.right, clip.right), bottom: Math.min(r.bottom, clip.bottom), text: n.data.trim().slice(0, 30), layer: !!e.closest(".panel") };
			if (box.right - box.left > 3 && box.bottom - box.top > 3) texts.push(box);
		}
	}
	texts.sort((a, b) => a.top - b.top);
	texts.forEach((a, i) => {
		for (let j = i + 1; j < texts.length && texts[j].top < a.bottom - 3; j++) {
			const b = texts[j];
			if (a.layer === b.layer && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 && Math.min(a.bottom, b.bottom) - b.top > 3) bad.add(a.text + " overlaps " + b.text);
		}
	});
	if (document.documentElement.scrollWidth > innerWidth) bad.add("the page is " + document.documentElement.scrollWidth + " px wide of " + innerWidth + ": " + [...document.querySelectorAll("body *")].filter(e => !e.closest(".wide") && e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 100)).join("\n"));
	return [...bad, ...(texts.length > 20 ? [] : ["no text was seen: is this test looking?"])];
})()`

// small checks that no text is cut off or overlaps other text at a width of 400 px, and at 1280 px
// with 200 % zoom.
func small(ctx context.Context, t *testing.T, d *dashboard) {
	t.Cleanup(func() {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(1360, 1000)); err != nil {
			t.Error(err)
		}
	})
	for name, viewport := range map[string]chromedp.Action[chromedp.Void]{
		"400 px": chromedp.EmulateViewport(400, 800), "200 %": chromedp.EmulateViewport(640, 500, chromedp.EmulateScale(2)), "1360 px": chromedp.EmulateViewport(1360, 1000),
	} {
		if err := chromedp.Do(ctx, viewport); err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			open(ctx, t, d.base+page.path)
			shows(ctx, t, page.shows)
			if bad := value[[]string](ctx, t, crowded); len(bad) > 0 {
				t.Errorf("%s at %s:\n%s", page.path, name, strings.Join(bad, "\n"))
			}
		}
	}
}

// withoutMotion checks that nothing is animated with prefers-reduced-motion, and that some elements
// are animated without it.
func withoutMotion(ctx context.Context, t *testing.T, d *dashboard) {
	const moving = `[...document.querySelectorAll("*")].filter(e => { const s = getComputedStyle(e); return s.animationName !== "none" || s.transitionDuration.split(", ").some(d => d !== "0s"); }).length`
	open(ctx, t, d.base+"/")
	shows(ctx, t, "worker")
	if value[int](ctx, t, moving) == 0 {
		t.Error("nothing moves by default: is this test looking?")
	}
	withMedia(ctx, t, "prefers-reduced-motion", "reduce")
	for _, page := range pages {
		open(ctx, t, d.base+page.path)
		shows(ctx, t, page.shows)
		if n := value[int](ctx, t, moving); n > 0 {
			t.Errorf("%s: %d elements move", page.path, n)
		}
	}
}
