// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// serveWebhook serves a webhook that adds $GREETING to orders, on controller-runtime's default
// port. It returns only after an error.
func serveWebhook() {
	http.HandleFunc("POST /greet", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: fmt.Appendf(nil, `[{"op":"add","path":"/data/greeting","value":%q}]`, os.Getenv("GREETING")),
		}
		_ = json.NewEncoder(w).Encode(review)
	})
	certs := filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	server := &http.Server{Addr: ":9443", ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "shop:", server.ListenAndServeTLS(filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key")))
	os.Exit(1)
}
