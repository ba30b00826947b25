// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !envtest

package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webappv1 "example.com/guestbook/api/v1"
	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// start runs the controller in a new namespace until the end of the test.
func start(t *testing.T) (k8s client.Client, namespace string) {
	t.Helper()
	s := sandbox.Shared(t, sandbox.Options{
		Nodes:   3,
		Install: sandbox.Install{Paths: []string{"../../config/crd"}},
	})
	namespace = s.Namespace(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), webappv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	parallel := true // All tests register a controller under the same name.
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: &parallel},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&GuestbookReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return mgr.GetClient(), namespace
}

func TestGuestbook(t *testing.T) {
	t.Parallel()
	k8s, namespace := start(t)
	book := &webappv1.Guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}
	book.Spec.Frontends = 2
	if err := k8s.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Wait(t.Context(), time.Minute, "two pods are ready", func() error {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(book), book); err != nil {
			return err
		}
		if book.Status.Ready != 2 {
			return fmt.Errorf("the status is %+v", book.Status)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestGuestbookDeleted checks that a Guestbook's Deployment is garbage-collected with its owner,
// which envtest cannot do.
func TestGuestbookDeleted(t *testing.T) {
	t.Parallel()
	k8s, namespace := start(t)
	book := &webappv1.Guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}
	deployment := &appsv1.Deployment{}
	if err := k8s.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Wait(t.Context(), time.Minute, "there is a Deployment", func() error {
		return k8s.Get(t.Context(), client.ObjectKeyFromObject(book), deployment)
	}); err != nil {
		t.Fatal(err)
	}
	if err := k8s.Delete(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Wait(t.Context(), time.Minute, "the Deployment is gone", func() error {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(book), deployment); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
