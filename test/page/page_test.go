// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page tests kubectl tide dashboard in a real browser, against a sandbox with the real
// manager. The tests are skipped if no browser is installed.
package page

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	if browserPath() == "" {
		fmt.Println("SKIPPED: there is no browser for the tests of the page: apt-get install chromium, or set CHROMIUM_BIN")
		os.Exit(0)
	}
	os.Exit(framework.Main(m, &cluster, "--nodes", "6"))
}

// browserPath returns the path of an installed browser, or "" if none is installed.
func browserPath() string {
	for _, name := range []string{os.Getenv("CHROMIUM_BIN"), "chromium", "chromium-browser", "chrome-headless-shell", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// dashboard is a running kubectl tide dashboard with its addresses and token.
type dashboard struct {
	// link is the printed link, which can be used in one tab. base is the page's address. token
	// authorizes programs.
	link, base, token string
	process           *exec.Cmd
	// end stops the dashboard like Ctrl-C.
	end func(*testing.T)
}

// code returns the one-time code, which is the link's fragment after #.
func (d *dashboard) code() string {
	_, code, _ := strings.Cut(d.link, "/#")
	return code
}

// linkTo returns a link with the same code to another page.
func (d *dashboard) linkTo(path string) string { return d.base + path + "#" + d.code() }

// freePort returns a port of this machine that is reserved until the test ends.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(framework.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startDashboard runs kubectl tide dashboard until the test ends.
func startDashboard(t *testing.T, kubeconfig string, args ...string) *dashboard {
	t.Helper()
	binary, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	header := filepath.Join(t.TempDir(), "header")
	d := &dashboard{process: exec.Command(binary, append([]string{"dashboard", "--no-browser", "--header-file", header}, args...)...)}
	d.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TZ=UTC")
	var notes strings.Builder
	d.process.Stderr = &notes
	out, err := d.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.process.Start(); err != nil {
		t.Fatal(err)
	}
	d.end = func(t *testing.T) {
		t.Helper()
		_ = d.process.Process.Signal(syscall.SIGINT)
		if err := d.process.Wait(); err != nil {
			t.Errorf("kubectl tide dashboard: %v\n%s", err, notes.String())
		}
	}
	t.Cleanup(func() {
		if d.process.ProcessState == nil {
			d.end(t)
		}
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("kubectl tide dashboard has printed no link: %v\n%s", err, notes.String())
	}
	d.link = strings.TrimSpace(link)
	d.base, _, _ = strings.Cut(d.link, "/#")
	text, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	d.token = strings.TrimSpace(strings.TrimPrefix(string(text), "Authorization: Bearer "))
	return d
}

// browser starts a browser with an empty profile, and returns the context of its first tab.
func browser(t *testing.T, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	return browserIn(t, newProfile(t), flags...)
}

// newProfile returns the directory of an empty profile.
func newProfile(t *testing.T) string {
	t.Helper()
	// The profile is not in t.TempDir, because browser processes may still write to it shortly
	// after the browser has exited.
	profile, err := os.MkdirTemp("", "tide-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		framework.Eventually(t, "the profile is removed", func() error { return os.RemoveAll(profile) })
	})
	return profile
}

// browserIn starts a browser with the given profile directory, and returns the context of its first
// tab.
func browserIn(t *testing.T, profile string, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browserPath()), chromedp.UserDataDir(profile), chromedp.WindowSize(1360, 1000),
		chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(framework.Patience))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), append(options, flags...)...)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(allocator)
	t.Cleanup(cancelTab)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab opens another tab in the same browser profile.
func tab(of context.Context, t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewContext(of)
	t.Cleanup(cancel)
	return ctx
}

// open navigates a tab to the given address.
func open(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
}

// value evaluates a script in a tab and returns its value.
func value[T any](ctx context.Context, t *testing.T, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, awaited))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

func awaited(p *runtime.EvaluateParams) { yes := true; p.AwaitPromise = &yes }

// until waits until the given script returns true in a tab.
func until(ctx context.Context, t *testing.T, what, script string) {
	t.Helper()
	untilWithin(ctx, t, framework.Patience, what, script)
}

// untilWithin is [until] with a custom timeout.
func untilWithin(ctx context.Context, t *testing.T, timeout time.Duration, what, script string) {
	t.Helper()
	framework.EventuallyWithin(t, timeout, what, func() error {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+script+")", awaited))
		if err == nil && !ok {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 1500)"))
			err = errors.New("the page is:\n" + text)
		}
		return err
	})
}

// shows waits until the page contains the given string.
func shows(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	until(ctx, t, fmt.Sprintf("the page shows %q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// press sends key presses to the focused element.
func press(ctx context.Context, t *testing.T, keys string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatal(err)
	}
}

// complaints collects a tab's exceptions, log entries and requests.
type complaints struct {
	mu       sync.Mutex
	lines    []string
	requests []string
}

// soFar returns the exceptions and log entries, and the requests, that have been collected so far.
func (c *complaints) soFar() (lines, requests []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines), slices.Clone(c.requests)
}

// listen starts to collect a tab's exceptions, log entries and requests.
func listen(ctx context.Context, t *testing.T) *complaints {
	t.Helper()
	c := &complaints{}
	err := chromedp.Listen(ctx, func(event any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			c.lines = append(c.lines, fmt.Sprint("exception: ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.URL))
		case *log.EventEntryAdded:
			c.lines = append(c.lines, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			c.requests = append(c.requests, e.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// pages lists the name and path of each page, and a string that the page shows once it has data.
var pages = []struct{ name, path, shows string }{
	{"overview", "/", "Largest pod that fits now"},
	{"pool", "/pools/worker?node=node-1", "If it is lost"},
	{"what-if", "/capacity", "Copies now"},
	{"restarts", "/restarts", "Past and coming"},
	{"start-up", "/pods?since=all", "Waited for"},
}

// imagesDir returns the output directory of make screenshots, or "" in other runs.
func imagesDir() string {
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		return cmp.Or(filepath.Clean(dir), dir)
	}
	return ""
}
