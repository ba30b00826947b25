// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
)

func kubeletsMain() int {
	if err := runKubelets(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func runKubelets() error {
	flags := pflag.NewFlagSet(Kubelets, pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	delays := kubelet.DefaultDelays()
	delays.AddFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = Kubelets
	// One process writes what would come from as many as there are nodes.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return kubelet.Run(ctx, client, delays)
}
