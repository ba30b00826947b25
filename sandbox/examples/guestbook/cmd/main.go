// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the operator of the guestbook example, laid out like a kubebuilder project.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webappv1 "example.com/guestbook/api/v1"
	"example.com/guestbook/internal/controller"
)

func main() {
	metrics := flag.String("metrics-bind-address", "0", "where metrics are served")
	elect := flag.Bool("leader-elect", false, "elect a leader")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(*metrics, *elect); err != nil {
		ctrl.Log.Error(err, "The manager has ended")
		os.Exit(1)
	}
}

func run(metrics string, elect bool) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, webappv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:           scheme,
		Metrics:          metricsserver.Options{BindAddress: metrics},
		LeaderElection:   elect,
		LeaderElectionID: "guestbook.example.com",
	})
	if err != nil {
		return err
	}
	if err := (&controller.GuestbookReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
