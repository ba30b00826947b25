// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// proxyStart is the maximum startup time of a proxy.
const proxyStart = 30 * time.Second

// ProxyOptions configure a fault proxy.
type ProxyOptions struct {
	// Command is the proxy's program and its first arguments, for instance {"/path/to/sandbox",
	// "proxy"}. [Sandbox.StartProxy] sets a default.
	Command []string
	// Upstream is the path of the kubeconfig with which the proxy connects to the API server. All
	// clients of the proxy have the permissions of that kubeconfig's user. [Sandbox.StartProxy]
	// defaults to the administrator's kubeconfig.
	Upstream string
	// Scenario contains the proxy's initial rules in YAML.
	Scenario string
	// Kubeconfig is the path to which the kubeconfig for clients is written. It defaults to a
	// temporary file, which [Proxy.Close] removes.
	Kubeconfig string
}

// Proxy is a running fault proxy. docs/fault-proxy-rules.md describes its rules.
type Proxy struct {
	*Process
	// Kubeconfig is the path of the kubeconfig with which clients connect to the proxy.
	Kubeconfig string
	// Control is the path of the control API's Unix socket, which only this user can access.
	Control string
	// LogFile is the path of the proxy's log, which contains a line for each request.
	LogFile string

	dir string
}

// StartProxy starts a fault proxy in front of this sandbox.
func (s *Sandbox) StartProxy(ctx context.Context, o ProxyOptions) (*Proxy, error) {
	if o.Command == nil {
		o.Command = []string{s.binary, "proxy"}
	}
	if o.Upstream == "" {
		o.Upstream = s.Kubeconfig
	}
	return StartProxy(ctx, o)
}

// StartProxy starts a fault proxy in front of any API server, and returns once clients can use it.
// Call [Proxy.Close] to stop it.
func StartProxy(ctx context.Context, o ProxyOptions) (*Proxy, error) {
	dir, err := os.MkdirTemp("", "fault-proxy-")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Kubeconfig: o.Kubeconfig, LogFile: filepath.Join(dir, "log"), Control: filepath.Join(dir, "control"), dir: dir}
	if err := p.start(ctx, o); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *Proxy) start(ctx context.Context, o ProxyOptions) error {
	if p.Kubeconfig == "" {
		p.Kubeconfig = filepath.Join(p.dir, "kubeconfig")
	}
	args := append(o.Command[1:len(o.Command):len(o.Command)],
		"--kubeconfig", o.Upstream, "--write-kubeconfig", p.Kubeconfig, "--log", p.LogFile, "--control", p.Control)
	if o.Scenario != "" {
		file := filepath.Join(p.dir, "scenario.yaml")
		if err := os.WriteFile(file, []byte(o.Scenario), 0o600); err != nil {
			return err
		}
		args = append(args, "--scenario", file)
	}
	var err error
	if p.Process, err = Start(exec.Command(o.Command[0], args...)); err != nil {
		return err
	}
	ctx, cancel := p.Context(ctx)
	defer cancel()
	return Wait(ctx, proxyStart, "the proxy is ready", func() error {
		// The proxy writes the kubeconfig atomically, after all other steps of its start.
		if info, err := os.Stat(p.Kubeconfig); err != nil || info.Size() == 0 {
			return errors.Join(errors.New("it has not written the kubeconfig"), err)
		}
		return nil
	})
}

// Close stops the proxy, if it is running, and removes its files.
func (p *Proxy) Close(ctx context.Context) error {
	var err error
	if p.Process != nil && p.Running() {
		err = p.Stop(ctx)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// Rule is a rule of the fault proxy and its counters.
type Rule struct {
	Name string `json:"name"`
	// Matched counts the requests and events that matched the rule; Fired counts the faults that it
	// injected.
	Matched int `json:"matched"`
	Fired   int `json:"fired"`
}

// AddRules adds all rules of the given scenario, which is YAML. If a rule is invalid, it adds no
// rule and returns an error.
func (p *Proxy) AddRules(ctx context.Context, scenario string) error {
	return p.call(ctx, http.MethodPost, "/rules", scenario, nil)
}

// Rule returns the rule with the given name.
func (p *Proxy) Rule(ctx context.Context, name string) (Rule, error) {
	var rule Rule
	err := p.call(ctx, http.MethodGet, "/rules/"+url.PathEscape(name), "", &rule)
	return rule, err
}

// AwaitFired waits until the named rule has injected its fault the given number of times. It
// returns an error if the timeout passes first.
func (p *Proxy) AwaitFired(ctx context.Context, name string, times int, timeout time.Duration) error {
	return p.call(ctx, http.MethodGet, fmt.Sprintf("/rules/%s?fired=%d&timeout=%s", url.PathEscape(name), times, timeout), "", nil)
}

// RemoveRule removes the named rule. Requests and events that the rule has delayed continue.
func (p *Proxy) RemoveRule(ctx context.Context, name string) error {
	return p.call(ctx, http.MethodDelete, "/rules/"+url.PathEscape(name), "", nil)
}

// ClearRules removes all rules. Requests and events that they have delayed continue.
func (p *Proxy) ClearRules(ctx context.Context) error {
	return p.call(ctx, http.MethodDelete, "/rules", "", nil)
}

// Freeze holds back the events of watches until Thaw is called. The parameter "match" selects the
// watches, for example "match: {resources: [nodes]}". If it is empty, Freeze selects all watches.
func (p *Proxy) Freeze(ctx context.Context, match string) error {
	return p.call(ctx, http.MethodPost, "/freeze", match, nil)
}

// Thaw ends all freezes. The events that were held back are delivered before newer events.
func (p *Proxy) Thaw(ctx context.Context) error {
	return p.call(ctx, http.MethodPost, "/thaw", "", nil)
}

// Cut terminates watches. The parameter "match" selects the watches, for example "match:
// {resources: [nodes]}". If it is empty, Cut terminates all watches.
func (p *Proxy) Cut(ctx context.Context, match string) error {
	return p.call(ctx, http.MethodPost, "/cut", match, nil)
}

// Watch describes a watch that a client has open through the proxy.
type Watch struct {
	ID                                   int64
	Resource, Namespace, Name, UserAgent string
	// Passed counts the events sent to the client. Waiting counts the events received from the API
	// server but not sent yet. Frozen is set while a rule holds back the watch's events.
	Passed, Waiting int
	Frozen          bool
}

// Watches returns the open watches.
func (p *Proxy) Watches(ctx context.Context) ([]Watch, error) {
	var list struct{ Watches []Watch }
	err := p.call(ctx, http.MethodGet, "/watches", "", &list)
	return list.Watches, err
}

// call sends a request to the control API. It decodes the response into answer unless answer is
// nil.
func (p *Proxy) call(ctx context.Context, method, path, body string, answer any) error {
	code, text, err := p.Request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if code >= http.StatusBadRequest {
		return fmt.Errorf("%s %s of the proxy: %d %s", method, path, code, strings.TrimSpace(text))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal([]byte(text), answer)
}

// Request sends a request to the control API. It returns the status code and the body of the
// response.
func (p *Proxy) Request(ctx context.Context, method, path, body string) (code int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://proxy"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	control := http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.Control)
	}}
	response, err := control.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
