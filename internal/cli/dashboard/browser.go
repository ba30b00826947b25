// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// openWithin is the maximum time to wait until the browser has opened the page.
const openWithin = 30 * time.Second

// openers maps GOOS values to the command that opens a file in the default browser.
var openers = map[string][]string{
	"linux": {"xdg-open"}, "freebsd": {"xdg-open"}, "darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// openBrowser opens the link in a browser. Other users of the machine can read process arguments,
// so the link must not be an argument. Instead, the browser opens a temporary HTML file that
// redirects to the link and that only the current user can read. openBrowser deletes the file once
// `used` signals that the link was opened, or after openWithin.
func openBrowser(ctx context.Context, link string, used <-chan struct{}, note func(string)) {
	opener := openers[runtime.GOOS]
	if len(opener) == 0 || runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	dir, err := os.MkdirTemp("", "kubectl-tide-") // MkdirTemp creates a directory that is only accessible to this user.
	if err != nil {
		return
	}
	defer os.RemoveAll(dir)
	file, err := writeRedirect(dir, link)
	if err != nil {
		return
	}
	if err := exec.CommandContext(ctx, opener[0], append(opener[1:], file)...).Start(); err != nil {
		note("note: no browser was opened (" + err.Error() + "): open the link yourself")
		return
	}
	select {
	case <-ctx.Done():
	case <-used:
	case <-time.After(openWithin):
	}
}

// writeRedirect writes an HTML file that redirects to the link. It creates the file in the
// directory dir, and returns the file's path.
func writeRedirect(dir, link string) (string, error) {
	file := filepath.Join(dir, "dashboard.html")
	text := fmt.Sprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\"><title>kubectl tide dashboard</title>\n", html.EscapeString(link))
	return file, os.WriteFile(file, []byte(text), 0o600)
}
