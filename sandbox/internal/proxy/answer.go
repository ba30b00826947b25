// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// method is the HTTP method of a verb, as far as it matters for the reason of an error: conflicts
// of a creation and of an update have different reasons.
func method(verb string) string {
	if verb == "create" {
		return http.MethodPost
	}
	return verb
}

// statusOf returns the Status that a fault answers a request with.
func statusOf(r fault.Request, f fault.Fault) metav1.Status {
	if f.Code == http.StatusGone && f.Reason == "" && f.Message == "" {
		return expired()
	}
	status := apierrors.NewGenericServerResponse(f.Code, method(r.Verb), r.GroupResource, r.Name,
		cmp.Or(f.Message, http.StatusText(f.Code)), f.RetryAfter.Seconds(), false).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Reason = metav1.StatusReason(cmp.Or(f.Reason, string(status.Reason)))
	status.Message = cmp.Or(f.Message, status.Message)
	return status
}

// answer writes an error. It is JSON for every client: an API server does
// the same for errors that come before content negotiation.
func answer(w http.ResponseWriter, status metav1.Status) {
	body, err := json.Marshal(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if after := status.Details; after != nil && after.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	// A client that is gone needs no answer.
	_, _ = w.Write(body)
}

// expired is the Status for a watch whose resourceVersion is too old.
func expired() metav1.Status {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// noStreamingLists is the Status of an API server without streaming lists; clients
// then fall back to a list.
func noStreamingLists(r fault.Request) metav1.Status {
	return statusOf(r, fault.Fault{Code: http.StatusUnprocessableEntity,
		Message: "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"})
}

// notFound is the Status for a read of an object that does not exist.
func notFound(r fault.Request) metav1.Status {
	status := apierrors.NewNotFound(r.GroupResource, r.Name).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}
