// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command baseline is not part of Tidekeeper. It is a typical small in-memory cron controller for
// comparison with Tidekeeper. It lists the annotated Deployments once, keeps a timer for each in
// memory, and does the same as kubectl rollout restart when a timer fires. It keeps no status, and
// checks nothing before a restart.
//
// A Deployment's annotation sets its due time, so that the benchmark does not have to wait for the
// next full minute. Restarts that became due before the program started are not made up for,
// because a cron library only knows the next tick after the current time.
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

// dueAnnotation holds the time at which a Deployment is restarted.
const dueAnnotation = "baseline.example.com/due-at"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	// With 0, client-go's default applies: 5 requests per second after the first 10.
	qps := flag.Float64("qps", 0, "requests per second; 0 is client-go's default, -1 no limit")
	flag.Parse()
	log.Fatal(run(*kubeconfig, float32(*qps)))
}

// run starts a timer for each annotated Deployment. It returns only if it cannot start.
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
