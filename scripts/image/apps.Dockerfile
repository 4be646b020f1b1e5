# A team's apps on the image of the jobs.
ARG JOBS_IMAGE
FROM ${JOBS_IMAGE}
USER root
COPY apps/ /opt/penstock/app/
# Compiled here because a pod's root file system is read-only; the import shows what is missing before a pod does.
ARG MODULES
# Where this step says what is wrong. A build by buildah has it in a file.
ARG SAID=/dev/stdout
RUN { python -m compileall -q /opt/penstock/app \
    && for module in ${MODULES}; do PYTHONDONTWRITEBYTECODE=1 python -c "import ${module}" || exit 1; done; } >>${SAID} 2>&1
USER 185
