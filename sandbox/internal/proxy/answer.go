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

// method returns the HTTP method of a verb, to select the reason of an error: conflicts have different
// reasons for a create and an update.
func method(verb string) string {
	if verb == "create" {
		return http.MethodPost
	}
	return verb
}

// statusOf returns the Status of a fault's response to a request.
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

// answer writes an error as JSON for every client. An API server does the same for errors before content
// negotiation.
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
	// An error means that the client is gone.
	_, _ = w.Write(body)
}

// expired returns the Status for a watch whose resourceVersion is too old.
func expired() metav1.Status {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// noStreamingLists returns the Status of an API server without streaming lists, upon which clients fall back
// to a list.
func noStreamingLists(r fault.Request) metav1.Status {
	return statusOf(r, fault.Fault{Code: http.StatusUnprocessableEntity,
		Message: "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"})
}

// notFound returns the Status for a read of a missing object.
func notFound(r fault.Request) metav1.Status {
	status := apierrors.NewNotFound(r.GroupResource, r.Name).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}
