// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
)

// recorder records the Events of all simulated kubelets in the background. Like a kubelet, it
// aggregates repeated Events and drops excess Events about a pod. It drops any Events while the API
// server cannot keep up. A nil recorder drops all Events.
type recorder struct{ broadcaster record.EventBroadcaster }

func newRecorder(client typedcorev1.EventsGetter) *recorder {
	if client == nil {
		return nil
	}
	r := &recorder{broadcaster: record.NewBroadcaster()}
	r.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events("")})
	return r
}

// record records Events of a node's kubelet about a pod.
func (r *recorder) record(node string, pod *corev1.Pod, events []event) {
	if r == nil || len(events) == 0 {
		return
	}
	// Create a client-go recorder for each call, which is cheap. Keeping a recorder for each of
	// thousands of nodes would take up memory.
	of := r.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: node})
	for _, e := range events {
		ref, err := reference.GetPartialReference(scheme.Scheme, pod, e.fieldPath)
		if err != nil {
			klog.ErrorS(err, "No reference for an event", "pod", klog.KObj(pod))
			return
		}
		of.Event(ref, e.kind, e.reason, e.message)
	}
}

// stop drops the Events that have not been written yet.
func (r *recorder) stop() {
	if r != nil {
		r.broadcaster.Shutdown()
	}
}
