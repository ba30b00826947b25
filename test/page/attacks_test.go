// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// body requests `path` with the token for programs and returns the response body. It repeats the
// request while the dashboard answers that the API server has not sent all objects yet.
func (d *dashboard) body(t *testing.T, path string) (text string) {
	t.Helper()
	framework.Eventually(t, path+" is served", func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+d.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		switch {
		case answer.StatusCode == http.StatusServiceUnavailable:
			return fmt.Errorf("%s %s", answer.Status, body)
		case err != nil || answer.StatusCode != http.StatusOK:
			t.Fatalf("%s: %s %s %v", path, answer.Status, body, err)
		}
		text = string(body)
		return nil
	})
	return text
}

// secretsStay searches all responses of the dashboard for the pods' environment variables and for
// the plugin's credentials: the pages, their data, and the data for a workload's form.
func secretsStay(t *testing.T, d *dashboard) {
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{secretValue}
	for _, found := range regexp.MustCompile(`(?m)^\s*(?:token|client-key-data|client-certificate-data|password): "?([\w+/=.-]{16,})`).FindAllStringSubmatch(string(kubeconfig), -1) {
		secrets = append(secrets, found[1])
	}
	if len(secrets) < 2 {
		t.Fatalf("the kubeconfig has no credentials that this test knows:\n%s", regexp.MustCompile(`: .*`).ReplaceAllString(string(kubeconfig), ": …"))
	}
	for _, path := range []string{
		"/-/page/", "/-/page/pools/worker?node=node-1", "/-/page/capacity?like=shop/deployment/web", "/-/page/restarts?restart=shop/web", "/-/page/pods?since=all&q=web",
		"/overview.json", "/pools/worker.json", "/capacity.json?like=shop/deployment/web", "/restarts.json", "/pods.json?since=all&q=web",
	} {
		text := d.body(t, path)
		for i, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has secret %d of %d in it", path, i+1, len(secrets))
			}
		}
	}
	// The pod is requested by name because the list shows only the slowest pods.
	if text := d.body(t, "/pods.json?since=all&q=web"); !strings.Contains(text, `"web-`) {
		t.Errorf("there is no pod of web, whose environment has the secret: is this test looking?\n%.300s", text)
	}
}

// networkGetsNothing checks that the page's port is closed at the other addresses of this machine.
func networkGetsNothing(t *testing.T, d *dashboard) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(d.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{"127.0.0.2", "::1"}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			addresses = append(addresses, n.IP.String())
		}
	}
	dialer := net.Dialer{Timeout: 2 * time.Second}
	for _, address := range addresses {
		if c, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(address, port)); err == nil {
			c.Close()
			t.Errorf("it listens on %s", address)
		}
	}
	c, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatalf("it does not listen on 127.0.0.1: %v", err)
	}
	c.Close()
}

// slowRequests sends incomplete requests and oversized requests, and checks that the server closes
// their connections.
func slowRequests(t *testing.T, d *dashboard) {
	address := strings.TrimPrefix(d.base, "http://")
	for name, tc := range map[string]struct {
		sent string
		want string // the beginning of the response; "" if the server closes the connection
	}{
		"half a request": {"GET / HTTP/1.1\r\nHost: " + address + "\r\nX-Slow: ", ""},
		"a long header":  {"GET / HTTP/1.1\r\nHost: " + address + "\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"a long body": {fmt.Sprintf("POST /-/act HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			address, d.token, 1<<20, strings.Repeat("x", 1<<20)), "HTTP/1.1 403 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(framework.Patience)); err != nil {
				t.Fatal(err)
			}
			// The write may fail, because the server may close the connection before it has read
			// everything.
			_, _ = io.WriteString(c, tc.sent)
			answer, err := io.ReadAll(c)
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("the connection is still open: %q", answer)
			}
			if err == nil && !strings.HasPrefix(string(answer), tc.want) && tc.want != "" || tc.want == "" && len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
				t.Errorf("it answers %.200q, want %q", answer, tc.want)
			}
		})
	}
}
