// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command nodes is not part of Tidekeeper. It is a typical small controller for comparison with
// node pools when a pool's label changes. It lists the nodes and updates them one by one. It keeps
// no record of the labels that it has set, so it could not remove them again.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	// With 0, client-go's default applies: 5 requests per second after the first 10.
	qps := flag.Float64("qps", 0, "requests per second; 0 is client-go's default, -1 no limit")
	label := flag.String("label", "", "the label that the nodes are to have")
	nodes := flag.Int("nodes", 0, "to how many nodes it is put")
	flag.Parse()
	if err := run(*kubeconfig, float32(*qps), *label, *nodes); err != nil {
		log.Fatal(err)
	}
}

func run(kubeconfig string, qps float32, label string, nodes int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = qps
	config.UserAgent = "baseline/1"
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	list, err := client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	fmt.Println("updating:", nodes)
	for i := range list.Items[:nodes] {
		node := &list.Items[i]
		node.Labels[label] = "1"
		if _, err := client.Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update node %s: %w", node.Name, err)
		}
	}
	return nil
}
