// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command watch is not part of Tidekeeper. It does the minimum that any program needs to follow a
// cluster's pods: it watches them, as Protobuf, and stores nothing. For each line on its stdin it
// prints the number of events that it has seen, so that the benchmark can check that it is still
// watching.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	log.Fatal(run(*kubeconfig))
}

// run watches all pods until the watch ends, and returns the reason.
func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "baseline/1"
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	// This list only provides the resourceVersion at which the watch starts.
	list, err := client.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	var seen atomic.Int64
	go func() {
		for questions := bufio.NewScanner(os.Stdin); questions.Scan(); {
			fmt.Println("seen:", seen.Load())
		}
	}()
	fmt.Println("watching: from", list.ResourceVersion)
	// A busy API server ends watches that it cannot serve in time. The next watch continues from
	// the last version seen.
	version := list.ResourceVersion
	for {
		pods, err := client.Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			return err
		}
		for event := range pods.ResultChan() {
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			if pod, ok := event.Object.(*corev1.Pod); ok {
				version = pod.ResourceVersion
			}
			if event.Type != watch.Bookmark {
				seen.Add(1)
			}
		}
	}
}
