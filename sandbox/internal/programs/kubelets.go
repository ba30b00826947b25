// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/storage"
	"tidekeeper.dev/tidekeeper/sandbox/internal/streaming"
)

func kubeletsMain() int {
	if err := runKubelets(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func runKubelets() error {
	flags := pflag.NewFlagSet(component.Kubelets, pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	release := flags.String("release", "", "the release of Kubernetes that the kubelets are of")
	events := flags.Bool("pod-events", true, "write the events of kubelets about pods")
	socket := flags.String("streaming-socket", "", "where the API server asks for logs, exec and the like")
	program := flags.String("program-socket", "", "socket of a program that runs as a pod in a network of its own, while there is such a program")
	realNodes := flags.StringArray("real-node", nil, "the socket of a real node, in the order of their numbers")
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
	config.UserAgent = component.Kubelets
	// Disable the client-side rate limit, because a single process writes for all nodes.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	writer, err := eventWriter(config, *events)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The simulated volume provisioner and the server of the kubelet HTTP API run in the same
	// process as the kubelets.
	provided, streamed := make(chan error, 1), make(chan error, 1)
	go func() { provided <- storage.Run(ctx, client) }()
	go func() {
		streamed <- streaming.Serve(ctx, client, *socket, *realNodes, streaming.Programs{Annotation: kubelet.ProgramAnnotation, Socket: *program})
	}()
	return errors.Join(kubelet.Run(ctx, client, *release, writer, delays), <-provided, <-streamed)
}

// Rate limit for the Events of all nodes together, per second. The rate is twice the default of a
// single real kubelet. This is low enough for an API server on a few cores.
const (
	eventQPS   = 100
	eventBurst = 500
)

// eventWriter returns a client for Events, or nil if no Events are to be recorded. The client has
// its own rate limit, so that Events do not delay status updates.
func eventWriter(config *rest.Config, wanted bool) (typedcorev1.EventsGetter, error) {
	if !wanted {
		return nil, nil
	}
	limited := rest.CopyConfig(config)
	limited.QPS, limited.Burst = eventQPS, eventBurst
	return typedcorev1.NewForConfig(limited)
}
