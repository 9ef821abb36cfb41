import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.JsonByteArray;
import java.io.FileReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Debezium, as it is embedded in a program: what it reads goes to Kafka, to the topics that it names.
 *
 * <p>Its argument is a file of properties: Debezium's own, "bootstrap", and "hold.after": after so many records it takes
 * no more, and waits to be killed. Every batch is acknowledged by Kafka before it is confirmed to Debezium.
 */
public class Engine {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            properties.load(file);
        }
        Properties kafka = new Properties();
        kafka.put("bootstrap.servers", properties.remove("bootstrap"));
        kafka.put("acks", "all");
        int holdAfter = Integer.parseInt((String) properties.remove("hold.after"));
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(kafka, new ByteArraySerializer(), new ByteArraySerializer());
        DebeziumEngine<ChangeEvent<byte[], byte[]>> engine =
                DebeziumEngine.create(JsonByteArray.class)
                        .using(properties)
                        .notifying(new Sending(producer, holdAfter))
                        .using((success, message, error) -> end(success, message, error))
                        .build();
        engine.run();
    }

    static void end(boolean success, String message, Throwable error) {
        System.out.println("ended: " + message);
        if (error != null) {
            error.printStackTrace(System.out);
        }
        // The producer's thread would keep the program.
        Runtime.getRuntime().halt(success ? 0 : 1);
    }

    static final class Sending implements DebeziumEngine.ChangeConsumer<ChangeEvent<byte[], byte[]>> {
        private final KafkaProducer<byte[], byte[]> producer;
        private final int holdAfter;
        private int sent = 0;

        Sending(KafkaProducer<byte[], byte[]> producer, int holdAfter) {
            this.producer = producer;
            this.holdAfter = holdAfter;
        }

        @Override
        public void handleBatch(
                List<ChangeEvent<byte[], byte[]>> batch,
                DebeziumEngine.RecordCommitter<ChangeEvent<byte[], byte[]>> committer)
                throws InterruptedException {
            List<Future<RecordMetadata>> answers = new ArrayList<>();
            try {
                for (ChangeEvent<byte[], byte[]> event : batch) {
                    if (sent == holdAfter) {
                        producer.flush();
                        System.out.println("held");
                        Thread.sleep(Long.MAX_VALUE);
                    }
                    answers.add(producer.send(new ProducerRecord<>(event.destination(), event.key(), event.value())));
                    sent++;
                }
                producer.flush();
                for (Future<RecordMetadata> answer : answers) {
                    answer.get();
                }
                for (ChangeEvent<byte[], byte[]> event : batch) {
                    committer.markProcessed(event);
                }
                committer.markBatchFinished();
            } catch (java.util.concurrent.ExecutionException failed) {
                throw new IllegalStateException(failed);
            }
        }

        /** Without it a deletion's tombstone would not come. */
        @Override
        public boolean supportsTombstoneEvents() {
            return true;
        }
    }
}
