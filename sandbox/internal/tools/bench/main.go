// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures a sandbox against its targets:
//
//	bench PATH-OF-SANDBOX
//
// The command prints every measurement, even if it misses its target. It returns an error only if a
// measurement fails.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// idle is the time for which the sandbox runs idle before its memory is measured.
const idle = 20 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "error: want the path of the sandbox binary")
		os.Exit(1)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string) error {
	start := time.Now()
	s, err := client.Up(ctx, client.Options{Binary: binary})
	if err != nil {
		return err
	}
	defer func() { _ = s.Down(context.WithoutCancel(ctx)) }()
	if err := deploy(ctx, s.Kubeconfig); err != nil {
		return fmt.Errorf("deployment: %w", err)
	}
	deployed := time.Since(start)

	time.Sleep(idle)
	status, err := s.Status(ctx)
	if err != nil {
		return err
	}

	start = time.Now()
	if _, err := s.Run(ctx, "nodes", "add", "--count", "1000", "--name-prefix", "bench"); err != nil {
		return err
	}
	added := time.Since(start)

	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d CPUs, load average %s\n", runtime.NumCPU(), load[:min(14, len(load))])
	fmt.Printf("%-40s %10s %10s\n", "", "measured", "target")
	seconds := func(what string, got, target time.Duration) {
		row(what, fmt.Sprintf("%.1f s", got.Seconds()), fmt.Sprintf("%.0f s", target.Seconds()), got <= target)
	}
	seconds("API server ready", status.Times.APIServerReady.Duration, 5*time.Second)
	seconds("Deployment of 6 ready, since 'up'", deployed, 8*time.Second)
	const gibibyte = 1 << 30
	row(fmt.Sprintf("memory of all, 5 nodes, idle for %s", idle), fmt.Sprintf("%d MiB", status.RSSBytes>>20), "1024 MiB", status.RSSBytes <= gibibyte)
	seconds("1,000 nodes added, usable", added, 5*time.Second)
	return nil
}

func row(what, got, target string, ok bool) {
	verdict := "ok"
	if !ok {
		verdict = "MISSED"
	}
	fmt.Printf("%-40s %10s %10s  %s\n", what, got, target, verdict)
}

// deploy creates a Deployment of six pods and waits until all are ready.
func deploy(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	api := clientset.AppsV1().Deployments("default")
	labels := map[string]string{"app": "bench"}
	if _, err := api.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/none"}}},
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		d, err := api.Get(ctx, "bench", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 6, nil
	})
}
