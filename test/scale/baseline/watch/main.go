// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command watch is not part of Tidekeeper. It is the minimum for any program that
// follows the pods of a cluster: it watches them, as protobuf, and keeps nothing. For each
// line on its stdin it prints how many events it has seen, so that who compares with it knows
// that it still watches.
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

// run returns the reason why the watch has ended.
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
	// Only to get a resourceVersion to watch from.
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
	// An API server that is busy ends the watches that it cannot serve in time: a client that
	// follows the pods goes on from where it was.
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
