// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

var (
	markup = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// shows opens the dashboard's page of the ScheduledRestart, and waits until the page's text matches
// the patterns in the given order. The page is empty until the dashboard has read the cluster.
func (w *truthWorld) shows(t *testing.T, patterns ...string) {
	t.Helper()
	p := command{args: []string{"dashboard", "--no-browser", "-n", w.namespace}}.process()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	}()
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it prints %q: %v", first, err)
	}
	base, token := framework.EnterPage(t, first)
	framework.Eventually(t, "the page about "+w.namespace, func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/-/page/restarts?restart="+w.namespace+"/web", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var page struct{ HTML string }
		if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
			return fmt.Errorf("%s: %w", answer.Status, err)
		}
		said := blanks.ReplaceAllString(html.UnescapeString(markup.ReplaceAllString(page.HTML, " ")), " ")
		rest := said
		for _, pattern := range patterns {
			at := regexp.MustCompile(pattern).FindStringIndex(rest)
			if at == nil {
				return fmt.Errorf("it does not say %q (after what it has said before):\n%s", pattern, said)
			}
			rest = rest[at[1]:]
		}
		return nil
	})
}
