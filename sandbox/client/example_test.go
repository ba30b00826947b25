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

// Tests of a package share a sandbox, each with a namespace of its own. What they need is
// installed when the first one asks, and all is gone when the process of the tests has ended.
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
		// A server of webhooks listens at s.Webhooks, and a client is made of s.Kubeconfig.
	}
	_ = testShop // TestShop, in a package of yours.
}

// A test of an operator in short: a control plane, a program that runs against
// it through the fault proxy, and a condition that holds in spite of a fault.
// The program is a watch by kubectl here.
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
	// Waiting ends early, with the output, if the operator ends.
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

	// Its watch falls behind.
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

	// And catches up.
	if err := proxy.Thaw(ctx); err != nil {
		log.Fatal(err)
	}
	err = sandbox.Wait(ctx, time.Minute, "the operator sees it", sees("news"))
	fmt.Println("after:", err == nil)
	// Output:
	// before: false
	// after: true
}
