// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package argo tests restarts of Argo Rollouts with Argo's own controller and CRDs.
//
//	argo_test.go     the restarts of Rollouts, as users see them
//	rollout_test.go  a test's Rollout, and its pods over time
package argo
