{{- define "astraflow.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "astraflow.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "astraflow.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "astraflow.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels that select pods: (dict "root" $ "part" "scheduler") */}}
{{- define "astraflow.selector" -}}
app.kubernetes.io/name: {{ include "astraflow.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "astraflow.labels" -}}
{{ include "astraflow.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "astraflow.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "astraflow.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "astraflow.fullname" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{/* The name of one scheduler, as every pod of the cluster can resolve it: (dict "root" $ "number" 0) */}}
{{- define "astraflow.schedulerHost" -}}
{{- $name := printf "%s-scheduler" (include "astraflow.fullname" .root) -}}
{{ printf "%s-%d.%s.%s.svc.%s" $name (int .number) $name .root.Release.Namespace .root.Values.clusterDomain }}
{{- end }}

{{/* What a `Host` header may say. */}}
{{- define "astraflow.allowedHosts" -}}
{{- $full := include "astraflow.fullname" . -}}
{{- $names := list $full (printf "%s.%s" $full .Release.Namespace) (printf "%s.%s.svc" $full .Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc.%s" $full .Release.Namespace .Values.clusterDomain) -}}
{{- range $number := until (int .Values.scheduler.replicas) -}}
{{- $names = append $names (include "astraflow.schedulerHost" (dict "root" $ "number" $number)) -}}
{{- end -}}
{{- if .Values.ingress.enabled -}}{{- $names = append $names .Values.ingress.host -}}{{- end -}}
{{ concat $names .Values.scheduler.allowedHosts | uniq | join "," }}
{{- end }}

{{- define "astraflow.workerUrls" -}}
{{- $urls := list -}}
{{- range $number := until (int .Values.scheduler.replicas) -}}
{{- $urls = append $urls (printf "ws://%s:8080/ws/worker" (include "astraflow.schedulerHost" (dict "root" $ "number" $number))) -}}
{{- end -}}
{{ join "," $urls }}
{{- end }}

{{- define "astraflow.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "astraflow.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* One variable from a Secret: (dict "name" NAME "from" {name, key}) */}}
{{- define "astraflow.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .from.name }}, key: {{ .from.key }}}
{{- end }}
