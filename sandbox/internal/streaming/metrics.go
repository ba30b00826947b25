// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// Metrics at /metrics/resource, with a kubelet's metric names.
var (
	nodeCPU         = prometheus.NewDesc("node_cpu_usage_seconds_total", "Cumulative cpu time consumed by the node in core-seconds", nil, nil)
	nodeMemory      = prometheus.NewDesc("node_memory_working_set_bytes", "Current working set of the node in bytes", nil, nil)
	containerCPU    = prometheus.NewDesc("container_cpu_usage_seconds_total", "Cumulative cpu time consumed by the container in core-seconds", containerLabels, nil)
	containerMemory = prometheus.NewDesc("container_memory_working_set_bytes", "Current working set of the container in bytes", containerLabels, nil)
	containerStart  = prometheus.NewDesc("container_start_time_seconds", "Start time of the container since unix epoch in seconds", containerLabels, nil)
	podCPU          = prometheus.NewDesc("pod_cpu_usage_seconds_total", "Cumulative cpu time consumed by the pod in core-seconds", podLabels, nil)
	podMemory       = prometheus.NewDesc("pod_memory_working_set_bytes", "Current working set of the pod in bytes", podLabels, nil)
	scrapeError     = prometheus.NewDesc("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", nil, nil)

	containerLabels = []string{"container", "namespace", "pod"}
	podLabels       = []string{"namespace", "pod"}
)

// meters holds the accumulated resource usage of all nodes whose metrics have been read.
type meters struct {
	mu sync.Mutex
	// byNode maps node names to meters. names maps node addresses to node names.
	byNode map[string]*meter
	names  map[string]string
}

// nodeNamed returns the node with the given name or address.
func (m *meters) nodeNamed(ctx context.Context, client kubernetes.Interface, host string) (*corev1.Node, error) {
	name := host
	if net.ParseIP(host) != nil {
		var err error
		if name, err = m.nameOf(ctx, client, host); err != nil {
			return nil, err
		}
	}
	return client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// nameOf returns the name of the node with the given address. It lists nodes only if the address is
// unknown, because nodes do not change their addresses.
func (m *meters) nameOf(ctx context.Context, client kubernetes.Interface, address string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name, known := m.names[address]; known {
		return name, nil
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	m.names = make(map[string]string, len(list.Items))
	for i := range list.Items {
		for _, a := range list.Items[i].Status.Addresses {
			m.names[a.Address] = list.Items[i].Name
		}
	}
	if name, known := m.names[address]; known {
		return name, nil
	}
	return "", apierrors.NewNotFound(corev1.Resource("nodes"), address)
}

// resourceMetrics serves the resource usage of a node and its pods. The request's tunnel determines
// the node.
func (s *server) resourceMetrics(w http.ResponseWriter, r *http.Request) {
	n, err := s.meters.nodeNamed(r.Context(), s.client, hostOf(r.Context()))
	if err == nil {
		var metrics prometheus.Collector
		if metrics, err = s.read(r.Context(), n); err == nil {
			registry := prometheus.NewRegistry()
			registry.MustRegister(metrics)
			promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
			return
		}
	}
	status := http.StatusInternalServerError
	if apierrors.IsNotFound(err) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}

// read returns the metrics of a node.
func (s *server) read(ctx context.Context, n *corev1.Node) (prometheus.Collector, error) {
	list, err := s.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.Name).String(), ResourceVersion: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	running := map[containerKey]containerUsage{}
	answer := &readings{}
	for i := range list.Items {
		pod := &list.Items[i]
		used, err := usageOf(pod)
		if err != nil {
			// If a usage annotation of a pod is invalid, still report the usage of the other pods.
			answer.failed = true
			fmt.Fprintln(os.Stderr, "error:", err)
			continue
		}
		of := podReadings{namespace: pod.Namespace, name: pod.Name}
		for _, u := range used {
			key := containerKey{pod.UID, u.name, u.started.Unix()}
			running[key] = u
			of.containers = append(of.containers, key)
		}
		answer.pods = append(answer.pods, of)
	}
	s.meters.mu.Lock()
	defer s.meters.mu.Unlock()
	m := s.meters.byNode[n.Name]
	if m == nil {
		m = &meter{}
		s.meters.byNode[n.Name] = m
	}
	answer.at = time.Now()
	answer.node, answer.containers = m.read(answer.at, n.CreationTimestamp.Time, running)
	return answer, nil
}

// readings holds the metrics of a node at a point in time.
type readings struct {
	at         time.Time
	node       counter
	containers map[containerKey]counter
	pods       []podReadings
	// failed is set if a pod's usage is unknown, because an annotation of the pod is invalid.
	failed bool
}

type podReadings struct {
	namespace, name string
	containers      []containerKey
}

// Describe sends nothing, because the pods are known only when metrics are collected.
func (r *readings) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics with their timestamps.
func (r *readings) Collect(metrics chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.NewMetricWithTimestamp(r.at, prometheus.MustNewConstMetric(desc, kind, value, labels...))
	}
	send(nodeCPU, prometheus.CounterValue, r.node.seconds)
	send(nodeMemory, prometheus.GaugeValue, r.node.usage.memory)
	for _, pod := range r.pods {
		var seconds, memory float64
		for _, key := range pod.containers {
			c := r.containers[key]
			seconds += c.seconds
			memory += c.usage.memory
			send(containerCPU, prometheus.CounterValue, c.seconds, key.name, pod.namespace, pod.name)
			send(containerMemory, prometheus.GaugeValue, c.usage.memory, key.name, pod.namespace, pod.name)
			metrics <- prometheus.MustNewConstMetric(containerStart, prometheus.GaugeValue, float64(key.started), key.name, pod.namespace, pod.name)
		}
		if len(pod.containers) > 0 {
			send(podCPU, prometheus.CounterValue, seconds, pod.namespace, pod.name)
			send(podMemory, prometheus.GaugeValue, memory, pod.namespace, pod.name)
		}
	}
	failed := 0.0
	if r.failed {
		failed = 1
	}
	metrics <- prometheus.MustNewConstMetric(scrapeError, prometheus.GaugeValue, failed)
}
