// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// page is a running kubectl tide dashboard for a user who may read all namespaces.
type page struct{ base, token string }

func startPage(t *testing.T) *page {
	t.Helper()
	path, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(path, "dashboard", "--no-browser", "--kubeconfig", cluster.Kubeconfig)
	process.Env = append(os.Environ(), "TZ=UTC")
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(process); err != nil { // The process ends with this test process, even if that is killed.
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGINT)
		if err := process.Wait(); err != nil {
			t.Errorf("kubectl tide dashboard: %v", err)
		}
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("kubectl tide dashboard has printed no link: %v", err)
	}
	p := &page{}
	p.base, p.token = framework.EnterPage(t, link)
	return p
}

// read returns the dashboard's response for the given path.
func (p *page) read(t *testing.T, path string) (string, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+path, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s is answered with %s: %.300s", path, response.Status, body)
	}
	return string(body), err
}

// pageInterval is the time between two reads of the page of restarts, which is long and expensive
// to render.
const pageInterval = 250 * time.Millisecond

// forecastPatience is the timeout for a new forecast. A forecast may take a minute on a busy machine,
// and the dashboard then pauses for nine times the CPU time that it took.
const forecastPatience = 20 * time.Minute

// follow reads the page of restarts again and again, like an open browser tab, until the page's
// forecast is newer than `since`. The returned channel yields nil, or an error if the forecast
// stays older.
func (p *page) follow(t *testing.T, since time.Time) <-chan error {
	t.Helper()
	followed := make(chan error, 1)
	go func() {
		var last error
		err := utilwait.PollUntilContextTimeout(t.Context(), pageInterval, forecastPatience, true, func(context.Context) (bool, error) {
			last = p.isSince(t, since)
			return last == nil, nil
		})
		if err != nil {
			err = fmt.Errorf("%w: %w: %s", err, last, p.forecastNote(t))
		}
		followed <- err
	}()
	return followed
}

// forecastNote returns what the page says about an outdated forecast.
func (p *page) forecastNote(t *testing.T) string {
	body, err := p.read(t, "/")
	if err != nil {
		return err.Error()
	}
	_, note, found := strings.Cut(body, "The forecast is of ")
	if !found {
		return "the page has no note about the forecast"
	}
	note, _, _ = strings.Cut(note, "<")
	return "The forecast is of " + note
}

// isSince returns nil if the page's forecast was made after `since`.
func (p *page) isSince(t *testing.T, since time.Time) error {
	body, err := p.read(t, "/restarts.json")
	if err != nil {
		return err
	}
	var forecast struct{ From time.Time }
	if err := json.Unmarshal([]byte(body), &forecast); err != nil {
		return err
	}
	if forecast.From.Before(since.Truncate(time.Second)) {
		return fmt.Errorf("its forecast is of %s", forecast.From.Format(time.RFC3339))
	}
	return nil
}
