// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command shop is an operator for the tests of `sandbox explore`. For each ConfigMap with the label
// shop=order, it creates a Secret, the receipt, and marks the order as done. It survives every
// fault, unless a flag selects a typical operator mistake.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"tidekeeper.dev/tidekeeper/sandbox/test/loop"
)

var mistake = flag.String("mistake", "", `a mistake to make: "done-first" marks an order as done before there is a receipt; "gives-up" does not try again what has failed; "panic" panics on a conflict; "restless" writes all the time after an error; "impatient" tries again at once when its write came too late; "turns" writes what $TURN is to its receipts; "opens-once" does not open a second account; "waits" waits for an answer of the bakery without a limit`)

// dated is off by default, because explore adds another fault-free run if the fault-free runs
// differ.
var dated = flag.Bool("dated", false, "write to each receipt when it was printed")

var bakery = flag.String("bakery", "", "the URL of the application that it asks for prices")

var pause = flag.Duration("pause", 0, "wait before an order is served")

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	webhook := flag.Bool("webhook", false, "serve a webhook")
	elect := flag.Bool("elect", false, "elect a leader by a Lease")
	listen := flag.String("listen", "", "an address on which it listens, as most operators do")
	selling := flag.Bool("sell", false, "be the bakery, on the address in $ADDRESS")
	flag.Parse()
	if *selling {
		fmt.Fprintln(os.Stderr, "bakery:", sell(os.Getenv("ADDRESS")))
		os.Exit(1)
	}
	if *listen != "" {
		if _, err := net.Listen("tcp", *listen); err != nil {
			fmt.Fprintln(os.Stderr, "shop:", err)
			os.Exit(1)
		}
	}
	if *webhook {
		go serveWebhook()
	}
	fmt.Fprintln(os.Stderr, "shop:", run(context.Background(), *kubeconfig, *elect))
	os.Exit(1)
}

// run processes orders until an error occurs. If elect is set, it first waits to become the leader.
func run(ctx context.Context, kubeconfig string, elect bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if *mistake == "impatient" {
		config.QPS = -1
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if elect {
		return lead(ctx, config, client)
	}
	return keep(ctx, client)
}

// lead processes orders while this process is the leader.
func lead(ctx context.Context, config *rest.Config, client kubernetes.Interface) error {
	host, _ := os.Hostname()
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "default", "shop",
		resourcelock.ResourceLockConfig{Identity: fmt.Sprint(host, "-", os.Getpid())}, config, 10*time.Second)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { ended <- keep(ctx, client) },
			OnStoppedLeading: func() { ended <- errors.New("it does not lead any more") },
		},
	})
	return <-ended
}

// keep processes orders until an error occurs.
func keep(ctx context.Context, client kubernetes.Interface) error {
	orders := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = "shop=order"
	})).Core().V1().ConfigMaps()
	return loop.Run(ctx, orders.Informer(), func(name cache.ObjectName) error {
		err := serve(ctx, client, orders.Lister(), name)
		for *mistake == "impatient" && apierrors.IsConflict(err) {
			err = serve(ctx, client, orders.Lister(), name)
		}
		if err == nil {
			return nil
		}
		despair(ctx, client, err)
		if *mistake == "gives-up" {
			return nil
		}
		return err
	})
}

// despair reacts to an error with the mistake that the flags select.
func despair(ctx context.Context, client kubernetes.Interface, err error) {
	switch {
	case *mistake == "panic" && apierrors.IsConflict(err):
		panic(err)
	case *mistake == "restless":
		go func() {
			for range time.Tick(100 * time.Millisecond) {
				_, _ = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "restless"}}, metav1.CreateOptions{})
				_ = client.CoreV1().ConfigMaps("default").Delete(ctx, "restless", metav1.DeleteOptions{})
			}
		}()
	}
}

func serve(ctx context.Context, client kubernetes.Interface, orders listers.ConfigMapLister, name cache.ObjectName) error {
	order, err := orders.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && order.Data["state"] == "done" {
		return nil
	}
	if err != nil {
		return err
	}
	time.Sleep(*pause) // sleep: simulates a slow operator on a busy machine.
	if *mistake == "done-first" {
		if err := markDone(ctx, client, order); err != nil {
			return err
		}
		return receipt(ctx, client, order)
	}
	if *bakery != "" {
		order = order.DeepCopy()
		if err := buy(ctx, order); err != nil {
			return err
		}
	}
	if err := receipt(ctx, client, order); err != nil {
		return err
	}
	return markDone(ctx, client, order)
}

func markDone(ctx context.Context, client kubernetes.Interface, order *corev1.ConfigMap) error {
	order = order.DeepCopy()
	order.Data["state"] = "done"
	_, err := client.CoreV1().ConfigMaps(order.Namespace).Update(ctx, order, metav1.UpdateOptions{})
	return err
}

func receipt(ctx context.Context, client kubernetes.Interface, order *corev1.ConfigMap) error {
	data := map[string]string{"item": order.Data["item"]}
	if *dated {
		data["printed"] = time.Now().String()
	}
	if *mistake == "turns" {
		data["turn"] = os.Getenv("TURN")
	}
	_, err := client.CoreV1().Secrets(order.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "receipt-" + order.Name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(order, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		}},
		StringData: data,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
