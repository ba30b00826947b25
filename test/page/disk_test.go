// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// canary is a value in sessionStorage that the search must find.
const canary = "a-canary-in-the-storage-of-the-session-0123"

// noTokenOnDisk uses the page as a user would, closes the browser, and searches the browser's
// profile for the tokens that the tab sent. The search does find the link's code, which is in the
// history, and the canary in sessionStorage, so it would also find a stored token.
func noTokenOnDisk(t *testing.T) {
	d := startDashboard(t, cluster.Kubeconfig)
	profile := newProfile(t)
	ctx := browserIn(t, profile)
	tokens := shownTokens(ctx, t)
	open(ctx, t, d.link)
	shows(ctx, t, "worker")
	value[bool](ctx, t, `(sessionStorage.setItem("canary", "`+canary+`"), true)`)
	for range 2 {
		if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
			t.Fatal(err)
		}
		shows(ctx, t, "worker")
	}
	open(ctx, t, d.base+"/restarts")
	shows(ctx, t, "Past and coming")
	until(ctx, t, "nothing is stored while the page is open", `sessionStorage.getItem("tide-ticket") === null && localStorage.length === 0 && !document.cookie`)

	open(ctx, t, "about:blank")
	seen := tokens()
	if len(seen) < 4 {
		t.Fatalf("the tab has had %d tokens in four documents: is this test listening?", len(seen))
	}
	if err := chromedp.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	if in := filesWith(t, profile, canary); len(in) == 0 {
		t.Error("what was put into sessionStorage is not found: is this test searching?")
	}
	t.Logf("the code of the link, which is spent, is in %v", filesWith(t, profile, d.code()))
	for _, token := range seen {
		if in := filesWith(t, profile, token); len(in) > 0 {
			t.Errorf("a token is in %v", in)
		}
	}
}

// shownTokens returns a function that returns all tokens that the tab has sent since the call to
// shownTokens.
func shownTokens(ctx context.Context, t *testing.T) func() []string {
	t.Helper()
	var mu sync.Mutex
	var tokens []string
	if err := chromedp.Listen(ctx, func(event any) {
		e, ok := event.(*network.EventRequestWillBeSent)
		if !ok {
			return
		}
		header, _ := e.Request.Headers["Authorization"].(string)
		token, isBearer := strings.CutPrefix(header, "Bearer ")
		mu.Lock()
		defer mu.Unlock()
		if isBearer && !slices.Contains(tokens, token) {
			tokens = append(tokens, token)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(tokens)
	}
}

// filesWith returns the files below `dir` that contain the given string, in UTF-8 or UTF-16.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	wide := make([]byte, 0, 2*len(text))
	for _, unit := range utf16.Encode([]rune(text)) {
		wide = append(wide, byte(unit), byte(unit>>8))
	}
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) || bytes.Contains(content, wide) {
			found = append(found, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// newLinkInOldTab opens a new link in a tab that shows the page of an earlier run of the dashboard
// at the same address. The browser then loads nothing, because only the fragment after # differs.
func newLinkInOldTab(ctx context.Context, t *testing.T) {
	port := freePort(t)
	first := startDashboard(t, cluster.Kubeconfig, "--port", port)
	other := tab(ctx, t)
	open(other, t, first.link)
	shows(other, t, "worker")
	first.end(t)
	until(other, t, "the page says that nothing answers", `document.getElementById("banner").textContent.includes("does not answer")`)
	value[bool](other, t, `([...document.querySelectorAll("nav a")].find(a => a.textContent === "Restarts").click(), true)`)
	until(other, t, "another page is not the old one", `location.pathname === "/restarts" && document.getElementById("refused")?.textContent.includes("does not answer") && !document.getElementById("pool-worker")`)
	// A link with the same path as the tab's does not load the page again.
	value[bool](other, t, `([...document.querySelectorAll("nav a")].find(a => a.textContent === "Overview").click(), true)`)
	until(other, t, "the tab is at the overview", `location.pathname === "/"`)
	second := startDashboard(t, cluster.Kubeconfig, "--port", port)
	until(other, t, "the old tab is not let in", `document.getElementById("welcome")`)
	value[bool](other, t, `(window.sameDocument = true, location.href = "`+second.link+`", true)`)
	until(other, t, "the new link lets in the old tab, and leaves the address bar",
		`window.sameDocument && document.getElementById("pool-worker") && !location.hash`)
}
