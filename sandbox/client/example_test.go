// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// The tests of a package share a sandbox; each test has its own namespace. The first call of Shared
// starts the sandbox and installs the manifests. The sandbox is removed when the test process
// exits.
func ExampleShared() {
	testShop := func(t *testing.T) {
		t.Parallel()
		s := sandbox.Shared(t, sandbox.Options{
			Nodes:   3,
			Install: sandbox.Install{Paths: []string{"config/crd/bases", "config/webhook/manifests.yaml"}, LocalWebhooks: true},
		})
		namespace := s.Namespace(t)
		if _, err := s.Kubectl(t.Context(), "", "apply", "--namespace", namespace, "--filename", "config/samples"); err != nil {
			t.Fatal(err)
		}
		// Start a webhook server at s.Webhooks, and create clients from s.Kubeconfig.
	}
	_ = testShop // In real code, TestShop is a test function of your own package.
}

// A short test of an operator: it starts a control plane, runs a program behind the fault proxy,
// and checks a condition that must hold despite a fault. This example runs kubectl get --watch in
// place of an operator.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	s, err := sandbox.Up(ctx, sandbox.Options{Nodes: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Down(context.WithoutCancel(ctx)) }()

	proxy, err := s.StartProxy(ctx, sandbox.ProxyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer proxy.Close(context.WithoutCancel(ctx))

	operator, err := sandbox.Start(s.Command(ctx, "kubectl", "--kubeconfig", proxy.Kubeconfig, "get", "configmaps", "--watch", "--output=name"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = operator.Kill() }()
	// If the operator exits, the context is canceled with an error that contains the operator's
	// output.
	ctx, cancel = operator.Context(ctx)
	defer cancel()

	sees := func(name string) func() error {
		return func() error {
			if !strings.Contains(operator.Output(), name) {
				return errors.New(operator.Output())
			}
			return nil
		}
	}
	if err := sandbox.Wait(ctx, time.Minute, "the operator watches", sees("kube-root-ca.crt")); err != nil {
		log.Fatal(err)
	}

	// Freeze the operator's watch, so that the operator sees an outdated state.
	if err := proxy.Freeze(ctx, "match: {resources: [configmaps]}"); err != nil {
		log.Fatal(err)
	}
	if _, err := s.Kubectl(ctx, "", "create", "configmap", "news"); err != nil {
		log.Fatal(err)
	}
	if err := sandbox.Wait(ctx, time.Minute, "an event is held back", func() error {
		watches, err := proxy.Watches(ctx)
		if err == nil && (len(watches) != 1 || watches[0].Waiting == 0) {
			err = fmt.Errorf("watches: %+v", watches)
		}
		return err
	}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("before:", sees("news")() == nil)

	// Thaw delivers the held events, so that the operator catches up.
	if err := proxy.Thaw(ctx); err != nil {
		log.Fatal(err)
	}
	err = sandbox.Wait(ctx, time.Minute, "the operator sees it", sees("news"))
	fmt.Println("after:", err == nil)
	// Output:
	// before: false
	// after: true
}
