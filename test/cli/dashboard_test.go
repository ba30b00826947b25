// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// fakeBrowser is a script that records its arguments, and the mode and content of the file that its
// arguments name.
const fakeBrowser = `#!/bin/sh
printf '%%s\n' "$@" >%[1]s/args
stat -c %%a "$1" "$(dirname "$1")" >%[1]s/modes
cp "$1" %[1]s/page
mv %[1]s/args %[1]s/opened
`

// TestDashboardOpensABrowser checks that kubectl tide dashboard opens the page in a browser if it
// runs on a terminal with a desktop. All users of a machine can read a browser's arguments, so the
// arguments name a file that only the same user can read, and that is removed once its link was
// used. When the terminal is closed, the command exits and the file is removed.
func TestDashboardOpensABrowser(t *testing.T) {
	dir := t.TempDir()
	files, browser := filepath.Join(dir, "tmp"), filepath.Join(dir, "bin")
	for _, d := range []string{files, browser} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(browser, "xdg-open"), fmt.Appendf(nil, fakeBrowser, dir), 0o700); err != nil {
		t.Fatal(err)
	}
	ours, theirs := terminal(t, 300)
	p := command{env: []string{"PATH=" + path + ":" + browser + ":/usr/bin:/bin", "DISPLAY=:0", "TMPDIR=" + files}, args: []string{"dashboard"}}.process()
	p.Stdin, p.Stdout, p.Stderr = theirs, theirs, theirs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	theirs.Close()
	lines := bufio.NewReader(ours)
	first, err := lines.ReadString('\n')
	link := strings.TrimSpace(first)
	_, code, found := strings.Cut(link, "/#")
	if err != nil || !found || len(code) != 43 {
		t.Fatalf("it prints %q: %v", first, err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	framework.Eventually(t, "the browser is opened", func() error {
		if read("opened") == "" {
			return errors.New("not yet")
		}
		return nil
	})
	opened := strings.TrimSpace(read("opened"))
	if strings.Contains(opened, "\n") || strings.Contains(opened, code) || filepath.Dir(filepath.Dir(opened)) != files {
		t.Errorf("the arguments of the browser are %q", opened)
	}
	if modes := read("modes"); modes != "600\n700\n" {
		t.Errorf("the modes of the file and its directory are %q", modes)
	}
	if page := read("page"); !regexp.MustCompile(`http-equiv="refresh" content="0; url=` + regexp.QuoteMeta(link) + `"`).MatchString(page) {
		t.Errorf("the file does not lead to the link: %q", page)
	}
	if arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Process.Pid)); err != nil || bytes.Contains(arguments, []byte(code)) {
		t.Errorf("the arguments of the plugin are %q, %v", arguments, err)
	}
	if _, err := os.Stat(opened); err != nil {
		t.Errorf("the file is gone before the link was used: %v", err)
	}
	getsThePage(t, link)
	framework.Eventually(t, "the file is removed", func() error {
		if left, err := os.ReadDir(files); err != nil || len(left) > 0 {
			return fmt.Errorf("there is %v, %w", left, err)
		}
		return nil
	})
	// Each printed link admits one more browser.
	if _, err := ours.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	for another := ""; !strings.Contains(another, "/#"); {
		if another, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(another, "/#") {
			getsThePage(t, another)
		}
	}

	ours.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("without its terminal it ends with %v", err)
		}
	case <-time.After(framework.Patience):
		t.Error("it goes on without its terminal")
	}
}

// getsThePage opens a link, and requests data of the page with the received token.
func getsThePage(t *testing.T, link string) {
	t.Helper()
	base, token := framework.EnterPage(t, link)
	getsData(t, base, "Bearer "+token)
}

// getsData requests data of the page with the given Authorization header. It repeats the request
// while the dashboard answers that the API server has not sent all objects yet.
func getsData(t *testing.T, base, authorization string) {
	t.Helper()
	framework.Eventually(t, "the dashboard has data", func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/overview.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", authorization)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusServiceUnavailable:
			return errors.New(answer.Status)
		default:
			t.Fatalf("it answers %s", answer.Status)
			return nil
		}
	})
}

// TestDashboardHeaderFile checks that programs are admitted with the header in a file that only the
// same user can read, and that exists as long as the dashboard runs. An existing file is not
// overwritten.
func TestDashboardHeaderFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.header")
	p := command{args: []string{"dashboard", "--no-browser", "--header-file", file}}.process()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	link, err := bufio.NewReader(out).ReadString('\n')
	base, code, _ := strings.Cut(strings.TrimSpace(link), "/#")
	if err != nil || code == "" {
		t.Fatalf("it prints %q: %v", link, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	header, authorization, _ := strings.Cut(strings.TrimSpace(string(text)), ": ")
	if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o600 || header != "Authorization" || strings.Contains(authorization, code) {
		t.Errorf("the file is %v, %v, and says %q", about, err, header)
	}
	getsData(t, base, authorization)
	again := command{args: []string{"dashboard", "--no-browser", "--header-file", file}}.run(t)
	if after, _ := os.ReadFile(file); again.code == 0 || !strings.Contains(again.stderr, "this file exists") || !bytes.Equal(after, text) {
		t.Errorf("with a file that exists: %+v", again)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there after the end: %v", err)
	}
}
