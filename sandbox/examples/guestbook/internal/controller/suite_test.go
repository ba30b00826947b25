// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package controller

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webappv1 "example.com/guestbook/api/v1"
)

var k8s client.Client

func TestMain(m *testing.M) {
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	cfg, err := env.Start()
	if err != nil {
		log.Fatal(err)
	}
	if err := webappv1.AddToScheme(scheme.Scheme); err != nil {
		log.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := (&GuestbookReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if err := mgr.Start(ctx); err != nil {
			log.Fatal(err)
		}
	}()
	k8s = mgr.GetClient()
	code := m.Run()
	cancel()
	if err := env.Stop(); err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

func TestGuestbook(t *testing.T) {
	book := &webappv1.Guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample"}}
	book.Spec.Frontends = 2
	if err := k8s.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	eventually := func(what string, check func() error) {
		t.Helper()
		var last error
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		}); err != nil {
			t.Fatalf("%s: %v", what, last)
		}
	}
	// envtest runs no Deployment controller and no kubelet, so the test sets the Deployment's
	// status itself.
	deployment := &appsv1.Deployment{}
	eventually("there is a Deployment", func() error {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(book), deployment); err != nil {
			return err
		}
		deployment.Status = appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 2}
		return k8s.Status().Update(t.Context(), deployment)
	})
	eventually("two pods are ready", func() error {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(book), book); err != nil {
			return err
		}
		if book.Status.Ready != 2 {
			return fmt.Errorf("the status is %+v", book.Status)
		}
		return nil
	})
	if err := k8s.Delete(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	// envtest has no garbage collector, so the test cannot check that the Deployment is deleted
	// with its Guestbook.
}
