// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// faultProxy is a running 'sandbox proxy'.
type faultProxy struct {
	kubeconfig, control, log string
}

// startProxy starts a proxy in front of a sandbox that ends with the test.
func startProxy(t *testing.T, s sandbox, scenario string) *faultProxy {
	t.Helper()
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	control := listener.Addr().String()
	listener.Close()
	p := &faultProxy{kubeconfig: filepath.Join(dir, "kubeconfig"), control: "http://" + control, log: filepath.Join(dir, "log")}
	args := []string{"proxy", "--data-dir", s.dir, "--write-kubeconfig", p.kubeconfig, "--log", p.log, "--control", control}
	if scenario != "" {
		file := filepath.Join(dir, "scenario.yaml")
		if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--scenario", file)
	}
	var said bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the proxy ended with %v: %s", err, said.String())
		}
	})
	waitFor(t, 20*time.Second, func() string {
		if _, err := os.Stat(p.kubeconfig); err != nil {
			return err.Error()
		}
		return ""
	})
	return p
}

func (p *faultProxy) config(t testing.TB) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func clientFor(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// client speaks JSON through the proxy, or protobuf, as client-go does by
// itself and as Kubernetes' own programs do.
func (p *faultProxy) client(t testing.TB, protobuf bool) kubernetes.Interface {
	t.Helper()
	config := p.config(t)
	if protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	return clientFor(t, config)
}

// call asks the proxy's own API, and wants it to succeed.
func (p *faultProxy) call(t testing.TB, method, path, body string) string {
	t.Helper()
	code, text := p.ask(t, method, path, body)
	if code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return text
}

func (p *faultProxy) ask(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.control+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// add adds rules, given as the items of a scenario's list.
func (p *faultProxy) add(t testing.TB, rules string) {
	t.Helper()
	p.call(t, http.MethodPost, "/rules", "rules:\n"+rules)
}

func (p *faultProxy) awaitFired(t testing.TB, rule string, times int) {
	t.Helper()
	p.call(t, http.MethodGet, fmt.Sprintf("/rules/%s?fired=%d&timeout=20s", rule, times), "")
}

// awaitFrozen waits until a watch of the resource holds events back.
func (p *faultProxy) awaitFrozen(t testing.TB, resource string, waiting int) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		var list struct {
			Watches []struct {
				Resource string
				Waiting  int
				Frozen   bool
			}
		}
		text := p.call(t, http.MethodGet, "/watches", "")
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, w := range list.Watches {
			if w.Resource == resource && w.Frozen && w.Waiting >= waiting {
				return ""
			}
		}
		return text
	})
}

// logged is a line of the log.
type logged struct {
	Time                                time.Time
	ID                                  int64
	Verb, Resource, Namespace, Name     string
	Path, UserAgent, Event, Fault, Rule string
	Status, Upstream                    int
	Bytes                               int64
	Seconds                             float64
}

// awaitLogged waits for a line of the log.
func (p *faultProxy) awaitLogged(t testing.TB, wanted func(logged) bool) logged {
	t.Helper()
	var found logged
	waitFor(t, 10*time.Second, func() string {
		text, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var one logged
			if err := json.Unmarshal([]byte(line), &one); err == nil && wanted(one) {
				found = one
				return ""
			}
		}
		return "no such line in the log:\n" + string(text)
	})
	return found
}
