// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// faultProxy is a running 'sandbox proxy' process.
type faultProxy struct {
	kubeconfig string
	proxy      *client.Proxy
}

// startProxy starts a fault proxy in front of a sandbox, which runs until the end of the test.
func startProxy(t *testing.T, s sandbox, scenario string) *faultProxy {
	t.Helper()
	// Without --kubeconfig, the proxy uses the administrator's kubeconfig.
	p := &faultProxy{kubeconfig: kubeconfigPlace(t)}
	var err error
	if p.proxy, err = s.up.StartProxy(t.Context(), client.ProxyOptions{Scenario: scenario, Kubeconfig: p.kubeconfig}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.proxy.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	wantSecret(t, p.kubeconfig)
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
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

// client returns a client that connects through the proxy. It uses JSON, client-go's default, or
// protobuf, which Kubernetes' own components use.
func (p *faultProxy) client(t testing.TB, protobuf bool) kubernetes.Interface {
	t.Helper()
	config := p.config(t)
	if protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	return clientFor(t, config)
}

// call sends a request to the proxy's control API, and fails the test if the request is rejected.
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
	code, text, err := p.proxy.Request(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return code, text
}

// add adds rules, given as YAML list items of a scenario, to the proxy.
func (p *faultProxy) add(t testing.TB, rules string) {
	t.Helper()
	p.call(t, http.MethodPost, "/rules", "rules:\n"+rules)
}

func (p *faultProxy) awaitFired(t testing.TB, rule string, times int) {
	t.Helper()
	p.call(t, http.MethodGet, fmt.Sprintf("/rules/%s?fired=%d&timeout=%s", rule, times, patience), "")
}

func (p *faultProxy) rule(t testing.TB, name string) client.Rule {
	t.Helper()
	r, err := p.proxy.Rule(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// askAndLeave sends a request, cancels it once the function "enough" returns true, and returns the
// request's error.
func askAndLeave(t testing.TB, request func(context.Context) error, enough func() bool) error {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	go func() { ended <- request(ctx) }()
	var err error
	waitFor(t, patience, func() string {
		select {
		case err = <-ended:
			return ""
		default:
		}
		if enough() {
			leave()
		}
		return "the request has not ended"
	})
	return err
}

// awaitFrozen waits until a watch of the resource is frozen with the given number of waiting
// events.
func (p *faultProxy) awaitFrozen(t testing.TB, resource string, waiting int) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		watches, err := p.proxy.Watches(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range watches {
			if w.Resource == resource && w.Frozen && w.Waiting >= waiting {
				return ""
			}
		}
		return fmt.Sprintf("the watches are %+v", watches)
	})
}

// awaitLogged waits until the proxy's log contains a wanted entry, and returns it.
func (p *faultProxy) awaitLogged(t testing.TB, wanted func(client.LogEntry) bool) client.LogEntry {
	t.Helper()
	var found client.LogEntry
	waitFor(t, 10*time.Second, func() string {
		entries, err := p.proxy.LogSince(0)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(entries, wanted)
		if i < 0 {
			return fmt.Sprintf("no such entry in the log: %+v", entries)
		}
		found = entries[i]
		return ""
	})
	return found
}
