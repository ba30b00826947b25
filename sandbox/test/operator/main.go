// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operator is a small operator that does not know about sandboxes: it acts as it would in a
// pod, and prints the results as "key: value" lines.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

func main() {
	exitCode := flag.Int("exit-code", 0, "what to end with after SIGTERM")
	webhookPort := flag.Int("webhook-port", 0, "where to serve a webhook; 0: nowhere")
	untilUSR1 := flag.Bool("report-signals", false, "report each signal, and end after SIGUSR1")
	once := flag.Bool("once", false, "end when everything is reported")
	kubelet := flag.String("kubelet", "", "the address of a kubelet to ask what its node uses; empty: none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGUSR1)
	defer stop()
	if err := operate(ctx, *webhookPort, *kubelet); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
	switch {
	case *untilUSR1:
		reportSignals()
	case !*once:
		fmt.Println("ready: yes")
		<-ctx.Done()
	}
	fmt.Println("ended: yes")
	os.Exit(*exitCode)
}

func reportSignals() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	fmt.Println("ready: yes")
	for s := range signals {
		if s == syscall.SIGUSR1 {
			return
		}
		if s != syscall.SIGURG { // Ignore SIGURG, which the Go runtime sends to its own process.
			fmt.Println("got:", s)
		}
	}
}

func operate(ctx context.Context, webhookPort int, kubelet string) error {
	fmt.Println("pid:", os.Getpid())
	fmt.Println("arguments:", strings.Join(os.Args[1:], " "))
	host, _ := os.Hostname()
	fmt.Println("host:", host)
	namespace, err := os.ReadFile(filepath.Join(serviceAccountDir, "namespace"))
	if err != nil {
		return err
	}
	fmt.Println("namespace:", string(namespace))
	for _, name := range []string{"POD_NAME", "POD_NAMESPACE", "NODE", "IP", "ACCOUNT", "FROM_CONFIGMAP", "FROM_SECRET", "ALL_color", "GREETING", "LIMIT"} {
		fmt.Printf("env %s: %s\n", name, os.Getenv(name))
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	// Without a kubeconfig, kubectl and many other programs fall back to the in-cluster
	// configuration.
	found, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	fmt.Println("same API server by any way:", found.Host == config.Host)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ConfigMaps(string(namespace)).List(ctx, metav1.ListOptions{})
	fmt.Println("configmaps:", err)
	_, err = client.CoreV1().Secrets(string(namespace)).List(ctx, metav1.ListOptions{})
	fmt.Println("secrets:", err)
	holder := os.Getenv("POD_NAME")
	_, err = client.CoordinationV1().Leases(string(namespace)).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: holder}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}, metav1.CreateOptions{})
	fmt.Println("lease:", err)
	if kubelet != "" {
		for _, path := range []string{"/metrics/resource", "/containerLogs/default/web/app"} {
			fmt.Printf("kubelet %s: %s\n", path, ask(ctx, config, "https://"+kubelet+":10250"+path))
		}
	}
	if webhookPort != 0 {
		return serveWebhook(webhookPort)
	}
	return nil
}

// ask sends a request and returns the status and the first line of the response. It does not verify
// the server's certificate, like programs that call kubelets with self-signed certificates.
func ask(ctx context.Context, config *rest.Config, url string) string {
	config = rest.CopyConfig(config)
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err.Error()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	line, _ := bufio.NewReader(answer.Body).ReadString('\n')
	return answer.Status + ": " + strings.TrimSpace(line)
}

// serveWebhook serves an admission webhook that denies every request, and a conversion webhook,
// with the certificate in controller-runtime's default directory.
func serveWebhook(port int) error {
	http.HandleFunc("POST /convert", convert)
	http.HandleFunc("POST /validate", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "the operator says no"}}
		_ = json.NewEncoder(w).Encode(review)
	})
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	dir := filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	go func() {
		fmt.Println("webhook:", server.ServeTLS(listener, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")))
	}()
	return nil
}

// convert converts objects between API versions that differ only in name.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		metav1.TypeMeta `json:",inline"`
		Request         struct {
			UID               string
			DesiredAPIVersion string
			Objects           []map[string]any
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, object := range review.Request.Objects {
		(&unstructured.Unstructured{Object: object}).SetAPIVersion(review.Request.DesiredAPIVersion)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": review.APIVersion, "kind": review.Kind,
		"response": map[string]any{
			"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects,
		},
	})
}
