// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command baseline is not part of Tidekeeper. The benchmark compares Tidekeeper with it:
// a typical small in-memory cron controller. It lists the annotated Deployments once,
// keeps a timer for each in memory, and does what kubectl rollout restart does when a
// timer fires. It keeps no status, and checks nothing before a restart.
//
// To avoid a wait for the next full minute, an annotation of the Deployment has the
// time when it is due. Restarts that were due before the start of the program are not
// made up for, since a cron library only knows the next tick after now.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// dueAnnotation has the time at which a Deployment is restarted.
const dueAnnotation = "baseline.example.com/due-at"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	// 0 is client-go's default, 5 requests a second after the first 10.
	qps := flag.Float64("qps", 0, "requests per second; 0 is client-go's default, -1 no limit")
	flag.Parse()
	log.Fatal(run(*kubeconfig, float32(*qps)))
}

// run returns only if it cannot start.
func run(kubeconfig string, qps float32) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = qps
	config.UserAgent = "baseline/1"
	client, err := appsv1.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	list, err := client.Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	timers := 0
	for _, d := range list.Items {
		due, err := time.Parse(time.RFC3339, d.Annotations[dueAnnotation])
		if err != nil || !due.After(time.Now()) {
			continue
		}
		timers++
		time.AfterFunc(time.Until(due), func() {
			patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
				time.Now().Format(time.RFC3339))
			if _, err := client.Deployments(d.Namespace).Patch(ctx, d.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
				log.Printf("restart %s: %v", d.Name, err)
			}
		})
	}
	fmt.Println("timers:", timers)
	select {}
}
