# The image for the dedicated mode, Connect workers and Spark's executors: docs/design/image.md.
#   docker build -t sparkmirror .
#   docker build -t sparkmirror --build-arg BASE=REGISTRY/debian@sha256:DIGEST --build-arg EXTRAS=spark,top,aws .
# BASE: a Debian that has Python 3.11 or newer and OpenJDK. Name it by a digest that you have checked.
ARG BASE=debian:trixie-slim

# --- Java: only the modules that Spark's driver and executors load -------------------------------------------
FROM ${BASE} AS java
ARG JAVA=21
# Slim images lack the folder, without which the package can't be configured.
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && apt-get install -y --no-install-recommends openjdk-${JAVA}-jdk-headless binutils \
 && rm -rf /var/lib/apt/lists/*
# What is easily taken for superfluous:
#   java.desktop          java.beans, which Spark's listeners use
#   java.security.jgss    Spark's launcher opens a package of it
#   jdk.security.auth     Hadoop's login
#   jdk.incubator.vector  Spark's launcher adds it always
#   jdk.zipfs             the pages of a standalone Master and Worker
#   jdk.crypto.ec         TLS
#   jdk.naming.dns        names of services
# Without a base archive (--generate-cds-archive) Java writes no archive of Spark's classes.
RUN jlink --strip-debug --no-man-pages --no-header-files --compress zip-6 --generate-cds-archive --output /opt/java \
      --add-modules java.base,java.desktop,java.instrument,java.logging,java.management,java.naming \
      --add-modules java.security.jgss,java.sql,java.xml \
      --add-modules jdk.crypto.ec,jdk.incubator.vector,jdk.management,jdk.naming.dns,jdk.security.auth \
      --add-modules jdk.unsupported,jdk.zipfs \
 && rm /opt/java/lib/server/classes_nocoops.jsa \
 && find /opt/java -exec touch -h -d @1780000000 {} +

# --- What every later stage has -----------------------------------------------------------------------------
FROM ${BASE} AS runtime
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 ca-certificates \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/* \
 && groupadd --gid 10001 sparkmirror \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin sparkmirror

# --- The names of pyproject.toml and the versions of requirements.lock: other changes of these fetch nothing ------
FROM runtime AS names
ARG EXTRAS=spark,top
WORKDIR /build
COPY pyproject.toml requirements.lock ./
RUN sed -e '/^ *--hash/d' -e 's/ *\\$//' requirements.lock > constraints.txt \
 && printf '%s\n' 'import sys, tomllib' \
      'project = tomllib.load(open("pyproject.toml", "rb"))["project"]' \
      'extras = [project["optional-dependencies"].get(name, []) for name in sys.argv[1].split(",")]' \
      'print("\n".join([*project["dependencies"], *sum(extras, [])]))' > names.py \
 && python3 names.py "${EXTRAS}" > names.txt \
 && touch -d @1780000000 names.txt constraints.txt

# --- Python packages -----------------------------------------------------------------------------------------
FROM runtime AS packages
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && python3 -m venv /build/pip \
 && python3 -m venv --without-pip /opt/sparkmirror
# An index other than PyPI, and optionally the certificate that signs it: --secret id=ca,src=FILE
ARG PIP_INDEX_URL
WORKDIR /build
COPY --from=names /build/names.txt /build/constraints.txt ./
RUN --mount=type=secret,id=ca,target=/run/ca.pem \
    if [ -s /run/ca.pem ]; then export PIP_CERT=/run/ca.pem; fi \
 && pip/bin/pip --python /opt/sparkmirror/bin/python install --no-cache-dir --no-compile \
      --requirement names.txt --constraint constraints.txt
# Spark's parts that no local, standalone, YARN or Kubernetes master needs for a mirror's jobs.
RUN ln -s /opt/sparkmirror/lib/python3.*/site-packages site-packages \
 && echo /opt/sparkmirror/product > site-packages/sparkmirror.pth
WORKDIR /build/site-packages/pyspark/jars
RUN rm -rf connect-repl \
      # Hive, its metastore and what only these use
      hive-* spark-hive* datanucleus-* derby* jdo-api* javax.jdo* libthrift* libfb303* bonecp* HikariCP* ST4* \
      antlr-runtime* \
      # machine learning and graphs
      spark-mllib* spark-graphx* breeze* spire* cats-kernel* algebra_* arpack* lapack* blas* JTransforms* \
      JLargeArrays* pmml* \
      # Spark Connect, pipelines, the old streaming, the Scala shell
      spark-connect* spark-pipelines* spark-streaming* spark-repl* scala-compiler* jline* \
      # files of tables
      orc-* parquet-* spark-avro* aircompressor* univocity* joda-time* jts-core* \
      # stores on disk of the history server's pages and of the external shuffle service, a Master's ZooKeeper
      rocksdbjni* leveldbjni* zookeeper* curator* \
      # TLS by OpenSSL instead of Java's
      netty-tcnative* \
      # models of Kubernetes' objects that Spark neither makes nor reads
      kubernetes-model-admissionregistration* kubernetes-model-apiextensions* kubernetes-model-autoscaling* \
      kubernetes-model-discovery* kubernetes-model-events* kubernetes-model-flowcontrol* \
      kubernetes-model-gatewayapi* kubernetes-model-policy* kubernetes-model-rbac* kubernetes-model-resource* \
      kubernetes-model-scheduling* kubernetes-model-storageclass*
# Compression libraries of other systems than Linux; PySpark's modules that are left out below, in the zip for YARN.
RUN printf '%s\n' 'import re, sys, zipfile' \
      'left_out = re.compile(sys.argv[1]).fullmatch' \
      'for name in sys.argv[2:]:' \
      '    with zipfile.ZipFile(name) as packed: files = [(it, packed.read(it)) for it in packed.infolist()]' \
      '    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as packed:' \
      '        for it, data in files: left_out(it.filename) or packed.writestr(it, data)' > /build/thin.py \
 && python3 /build/thin.py '(?i)(?!.*linux.*(?:amd64|x86_64|aarch64)).*\.(?:so|dll|dylib|jnilib)' \
      zstd-jni-*.jar snappy-java-*.jar lz4-java-*.jar \
 && python3 /build/thin.py 'pyspark/(?:ml|mllib|pandas|pipelines|sql/connect|streaming)/.*|.*/tests/.*' \
      ../python/lib/pyspark.zip
WORKDIR /build/site-packages
RUN rm -rf pyspark/data pyspark/examples pyspark/ml pyspark/mllib pyspark/pandas pyspark/pipelines \
      pyspark/sql/connect pyspark/streaming \
      pyarrow/include pyarrow/src pyarrow/tests pyarrow/_flight* pyarrow/libarrow_flight* \
      pyarrow/libarrow_python_flight* pyarrow/_s3fs* pyarrow/libarrow_s3* \
 && find . -type d -name tests -prune -exec rm -rf {} + \
 # Colours for source code, which no command shows.
 && find pygments/lexers -name '*.py' ! -name '__init__.py' ! -name '_mapping.py' -delete \
 && find . -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' \) -delete \
 # A wheel holds the same library under three names.
 && for it in pyarrow/*.so.*.*.*; do \
      [ -e "$it" ] || continue; \
      ln -sf "$(basename "${it%.*.*}")" "$it"; ln -sf "$(basename "${it%.*.*}")" "${it%.*.*.*}"; done \
 # Bytecode that is not compared with its source: a read-only root could not renew it.
 && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash . \
 # Whole seconds, as layers keep them: the archive of classes is named and checked by them.
 && find /opt/sparkmirror -exec touch -h -d @1780000000 {} +

# --- sparkmirror itself ---------------------------------------------------------------------------------------
FROM packages AS product
WORKDIR /build/source
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN --mount=type=secret,id=ca,target=/run/ca.pem \
    if [ -s /run/ca.pem ]; then export PIP_CERT=/run/ca.pem; fi \
 && PIP_CONSTRAINT=/build/constraints.txt /build/pip/bin/pip install --no-cache-dir --no-compile --no-deps \
      --target /opt/sparkmirror/product . \
 && rm -rf /opt/sparkmirror/product/bin \
 && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/sparkmirror/product

# --- The image -------------------------------------------------------------------------------------------------
FROM runtime
LABEL org.opencontainers.image.title="sparkmirror" \
      org.opencontainers.image.description="Kafka MirrorMaker 2 on Spark" \
      org.opencontainers.image.licenses="Apache-2.0 AND 0BSD AND MIT"
COPY --from=java /opt/java /opt/java
COPY --from=packages /opt/sparkmirror /opt/sparkmirror
COPY --from=product /opt/sparkmirror/product /opt/sparkmirror/product
ENV HOME=/tmp \
    JAVA_HOME=/opt/java \
    SPARK_HOME=/opt/spark \
    SPARKMIRROR_CACHE=/opt/sparkmirror/cache \
    PATH=/opt/sparkmirror/bin:/opt/java/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1
# The programs, the paths that compose files and pods type, and the archive of Spark's classes.
RUN ln -s /opt/sparkmirror/lib/python3.*/site-packages/pyspark /opt/spark \
 && printf '#!/opt/sparkmirror/bin/python -P\nimport sys\nfrom sparkmirror.%s import main\nsys.exit(main())\n' \
      cli.main > /opt/sparkmirror/bin/sparkmirror \
 && printf '#!/opt/sparkmirror/bin/python -P\nimport sys\nfrom sparkmirror.%s import main\nsys.exit(main())\n' \
      container.entry > /opt/sparkmirror/bin/container \
 && printf '#!/bin/sh\nexec python3 -I -S /opt/sparkmirror/product/sparkmirror/container/health.py\n' \
      > /opt/sparkmirror/bin/health \
 && chmod 755 /opt/sparkmirror/bin/sparkmirror /opt/sparkmirror/bin/container /opt/sparkmirror/bin/health \
 && mkdir -p /opt/kafka/bin /opt/bitnami/kafka/bin /etc/confluent/docker \
 && for path in /opt/kafka/bin/connect-mirror-maker.sh /opt/kafka/bin/connect-distributed.sh \
      /opt/bitnami/kafka/bin/connect-mirror-maker.sh /opt/bitnami/kafka/bin/connect-distributed.sh \
      /etc/confluent/docker/run /docker-entrypoint.sh; do ln -s /opt/sparkmirror/bin/container "$path"; done \
 && sparkmirror prepare --spark-only \
 && rm -rf /tmp/* /tmp/.[!.]*
USER 10001:10001
EXPOSE 8080 8083 9404
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["/opt/sparkmirror/bin/health"]
ENTRYPOINT ["/opt/sparkmirror/bin/container"]
